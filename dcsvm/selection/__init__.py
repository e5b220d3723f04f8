"""The choice of settings: `dcsvm.grid_search` of C, gamma and epsilon; `dcsvm.easy` of all."""
