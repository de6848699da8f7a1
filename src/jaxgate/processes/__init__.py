"""Everything that happens in another process: it is started here, and what it leaves is read here."""
