"""The theory of wen2023: numpy and scipy only."""
