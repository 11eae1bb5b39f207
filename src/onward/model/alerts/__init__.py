"""Alert rules and the messages made of their notices, pure. Sending them, and what is stored of them, lives in operations and tracker."""
