"""What happens before the training is launched: environment, command, modules and setup lines, a request's inputs, batch scripts.

Not here: anything that runs beside the training.
"""
