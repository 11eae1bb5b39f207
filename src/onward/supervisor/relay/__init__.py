"""The tracker on the node's loopback that accepts every call: its HTTP server, MLflow's calls, older scripts' calls, artifacts.

Not here: sending to the tracker's server (supervisor/telemetry). No call waits for it.
"""
