from django.db import migrations

# What belongs to an organization is written under a lock that the writers share and whoever moves the
# organization to another cell has alone (runs/cells). Those who waited for it find the organization gone.
# `deputy.moving` is set by the move itself.
FUNCTIONS = """
CREATE FUNCTION groups_stays(organization text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('deputy.cell:' || organization, 0));
    IF EXISTS (SELECT FROM groups_move WHERE organization_id = organization AND state IN ('moved', 'arriving'))
       AND current_setting('deputy.moving', true) IS DISTINCT FROM organization THEN
        RAISE EXCEPTION 'the organization % is in another cell', organization USING ERRCODE = 'DP001';
    END IF;
END $$;
CREATE FUNCTION groups_stays_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM groups_stays(OLD.organization_id);
        RETURN OLD;
    END IF;
    IF NEW.organization_id IS NOT NULL THEN
        PERFORM groups_stays(NEW.organization_id);
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION groups_stays_itself() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM groups_stays(OLD.id);
        RETURN OLD;
    END IF;
    PERFORM groups_stays(NEW.id);
    RETURN NEW;
END $$;
-- Of a row that names its organization by way of another: the other's table, and the column that names it.
CREATE FUNCTION groups_stays_by() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    organization text;
    written record := CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
BEGIN
    EXECUTE format('SELECT organization_id FROM %I WHERE id = $1', TG_ARGV[0])
        INTO organization USING to_jsonb(written) ->> TG_ARGV[1];
    IF organization IS NOT NULL THEN
        PERFORM groups_stays(organization);
    END IF;
    RETURN written;
END $$;
"""
DROP = """
DROP FUNCTION groups_stays_by();
DROP FUNCTION groups_stays_itself();
DROP FUNCTION groups_stays_row();
DROP FUNCTION groups_stays(text);
"""
TRIGGER = "CREATE TRIGGER stays BEFORE INSERT OR UPDATE OR DELETE ON {} FOR EACH ROW EXECUTE FUNCTION {};\n"
# Not of runs_runevent, whose rows are written with their run's, nor of runs_queuemessage, which decides nothing.
ROWS = (
    *("groups_absence", "groups_agentinstance", "groups_change", "groups_customrole", "groups_group"),
    *("groups_groupmember", "groups_identityprovider", "groups_membership", "groups_project"),
    *("groups_proposedchange", "groups_role", "groups_routingexample", "groups_token"),
    *("memory_contextview", "memory_memory", "memory_page", "memory_segment"),
    *("policy_capability", "policy_capabilityrule", "policy_grant", "policy_grantuse", "policy_outsideentity"),
    *("policy_toolbinding", "policy_tooldeclaration"),
    *("runs_a2atask", "runs_approval", "runs_approvaldecision", "runs_approvalnotice", "runs_approvalwatch"),
    *("runs_channel", "runs_connectedaccount", "runs_conversation", "runs_idempotencyrecord"),
    *("runs_mcpserver", "runs_mcptask", "runs_mcptool", "runs_modelkey", "runs_modelprice", "runs_outboundcall"),
    *("runs_rating", "runs_remoteagent", "runs_remotetask", "runs_run", "runs_schedule", "runs_scheduledrun"),
    *("runs_toolcall", "runs_triedmodel", "runs_wait", "runs_webhookdelivery", "runs_webhookendpoint"),
)
BY = {
    "memory_embedding": ("memory_memory", "memory_id"),
    "memory_memoryrevision": ("memory_memory", "memory_id"),
    "runs_chataccount": ("runs_channel", "channel_id"),
}
TRIGGERS = {
    **{name: TRIGGER.format(name, "groups_stays_row()") for name in ROWS},
    "groups_organization": TRIGGER.format("groups_organization", "groups_stays_itself()"),
    **{
        name: TRIGGER.format(name, f"groups_stays_by('{parent}', '{column}')")
        for name, (parent, column) in BY.items()
    },
}
DROPS = "".join(f"DROP TRIGGER stays ON {name};\n" for name in TRIGGERS)


class Migration(migrations.Migration):
    dependencies = [
        ("groups", "0027_cells"),
        ("memory", "0012_neighbours_of_all"),
        ("policy", "0009_versions_once"),
        ("runs", "0042_levels"),
    ]

    operations = [
        migrations.RunSQL(FUNCTIONS, DROP),
        migrations.RunSQL([*TRIGGERS.values()], DROPS),
    ]
