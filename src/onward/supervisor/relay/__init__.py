"""The tracker on the node's loopback that always accepts: its HTTP server, MLflow's calls, older scripts' calls,
artifacts, and the values it knows. No call waits for the tracker's server.
"""
