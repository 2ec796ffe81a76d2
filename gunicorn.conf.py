"""What gunicorn is told wherever Deputy's web runs: it reads this file in the folder that it starts in."""

worker_class = "asgi"
control_socket_disable = True
graceful_timeout = 5  # seconds that requests get to end when it stops; a stream is followed anew
keepalive = 75  # seconds for the next request: proxies keep a connection for 60, and programs ask every few
