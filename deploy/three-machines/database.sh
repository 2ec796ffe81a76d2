#!/bin/sh
# Deputy's role and database, made once, on whichever machine leads: database.sh m1
. "$(dirname -- "$0")/common.sh"

PGPASSWORD=$SUPERUSER_PASSWORD "$PG_BIN/psql" --no-psqlrc --quiet --set ON_ERROR_STOP=1 \
    "postgresql://postgres@$hosts/postgres?target_session_attrs=read-write&connect_timeout=2" <<END
CREATE ROLE deputy LOGIN PASSWORD '$DEPUTY_PASSWORD';
CREATE DATABASE deputy OWNER deputy TEMPLATE template0 ENCODING UTF8 LOCALE 'C.UTF-8';
END
