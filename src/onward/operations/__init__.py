"""The verbs: functions that the command line, the API and the gateway all call.

Not here: arguments and printed text (cli), HTTP (api), parsing (inputs).
"""
