"""What is done before a training is launched: its environment and command, modules and setup lines, a request's inputs,
a batch script's surroundings. Nothing here runs beside the training.
"""
