"""How the watcher tells that a checkpoint written without the SDK is whole."""
