"""One verb a file. The admin, the API, the executor and the sweeper all call these."""
