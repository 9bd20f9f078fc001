"""Why a run took as long as it did, and what would change that."""
