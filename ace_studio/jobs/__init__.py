"""Border: the engine process, its client, and the messages between them."""
