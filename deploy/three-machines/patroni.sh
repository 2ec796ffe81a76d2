#!/bin/sh
# PostgreSQL under Patroni, which makes one of the three the leader: patroni.sh m1
. "$(dirname -- "$0")/common.sh"

[ "$SYNCHRONOUS" = yes ] && synchronous=true || synchronous=false
install -d -m 0755 "$FOLDER" "$home"
install -d -m 0700 -o postgres -g postgres "$home/postgres"
settings=$home/postgres/patroni.yml
umask 077
cat >"$settings" <<END
scope: deputy
name: $name
restapi: {listen: "$address:8008", connect_address: "$address:8008"}
etcd3: {hosts: ["$M1:2379", "$M2:2379", "$M3:2379"]}
bootstrap:
  dcs:
    # a leader that has not been heard of for ttl seconds is replaced; ttl >= loop_wait + 2 x retry_timeout
    ttl: 5
    loop_wait: 1
    retry_timeout: 2
    maximum_lag_on_failover: 1048576
    synchronous_mode: $synchronous
    postgresql:
      use_pg_rewind: true
      # the last three: what follows finds the next leader, and who leads notices who is gone, within seconds
      parameters: {max_connections: 200, shared_buffers: 128MB, wal_log_hints: "on",
                   wal_retrieve_retry_interval: 200ms, wal_receiver_timeout: 5s, wal_sender_timeout: 5s}
  initdb: [{encoding: UTF8}, {locale: C.UTF-8}, data-checksums]
postgresql:
  listen: "$address:5432"
  connect_address: "$address:5432"
  bin_dir: $PG_BIN
  data_dir: $home/postgres/data
  pgpass: $home/postgres/pgpass
  parameters: {unix_socket_directories: "$home/postgres"}
  pg_hba:
    - local all all trust
    - host all all $NETWORK scram-sha-256
    - host replication replicator $NETWORK scram-sha-256
  authentication:
    superuser: {username: postgres, password: $SUPERUSER_PASSWORD}
    replication: {username: replicator, password: $REPLICATION_PASSWORD}
    rewind: {username: postgres, password: $SUPERUSER_PASSWORD}
END
chown postgres:postgres "$settings"
exec_as postgres postgres /usr/bin/patroni "$settings"
