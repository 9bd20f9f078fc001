"""The machine on the desk: whole runs on its kernel and in the model, side by side."""
