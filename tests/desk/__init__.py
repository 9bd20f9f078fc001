"""The machine on the desk: complete runs on its kernel and in the model, side by side."""
