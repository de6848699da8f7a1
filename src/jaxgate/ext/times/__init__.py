"""Times on quiet, exclusive hardware, from recording sessions."""
