"""What single commands and modes show, each in words of its own."""
