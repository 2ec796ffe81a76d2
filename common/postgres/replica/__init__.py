"""Django's PostgreSQL engine for the replica: sessions that write nothing and give up soon."""
