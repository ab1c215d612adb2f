"""The theory of mulayoff2021: numpy and scipy only."""
