"""What other tools give when they are used as their documentation says, and the models that they are tried on."""
