#!/bin/sh
# One of three etcd servers, by which the machines agree who leads: etcd.sh m1
. "$(dirname -- "$0")/common.sh"

exec_as etcd etcd /usr/bin/etcd --name "$name" --data-dir "$home/etcd" --logger zap --log-level warn \
    --listen-peer-urls "http://$address:2380" --initial-advertise-peer-urls "http://$address:2380" \
    --listen-client-urls "http://$address:2379" --advertise-client-urls "http://$address:2379" \
    --initial-cluster "m1=http://$M1:2380,m2=http://$M2:2380,m3=http://$M3:2380" \
    --initial-cluster-token deputy --auto-compaction-retention 1 \
    --heartbeat-interval 50 --election-timeout 500  # milliseconds, for machines of one network
