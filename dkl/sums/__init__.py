"""What one block contributes: records closed under addition."""
