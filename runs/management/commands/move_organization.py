"""manage.py move_organization SLUG --to URL"""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs.cells import move


class Command(BaseCommand):
    help = "Move an organization to another cell. May be called again when it was cut short."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")
        parser.add_argument(
            "--to",
            required=True,
            metavar="URL",
            help="the target's database, such as postgresql://deputy@db2/deputy (its password in ~/.pgpass)",
        )
        parser.add_argument(
            "--tell",
            action="append",
            default=[],
            metavar="URL",
            help="the database of a further cell whose directory is to know it; may be repeated",
        )
        parser.add_argument(
            "--drain",
            type=float,
            default=move.DRAIN_SECONDS,
            metavar="SECONDS",
            help="how long to wait for calls that act outside (default: %(default)s)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        say = self.stdout.write if options["verbosity"] > 1 else lambda words: None
        try:
            done = move.move(options["slug"], options["to"], drain=options["drain"], say=say)
            move.tell(options["slug"], options["tell"])
        except move.CannotMove as error:
            raise CommandError(str(error)) from None
        if done.resumed:
            self.stdout.write(f"{done.name} had moved to {done.address}; what was left to do is done.")
            return
        self.tell(done)

    def tell(self, done: move.Report) -> None:
        self.stdout.write(
            f"{done.name} is at {done.address}: {sum(done.rows.values())} rows, "
            f"{done.rows['runs_run']} runs, {done.caught_up} rows again while it was frozen."
        )
        self.stdout.write(
            f"Copied in {done.copying:.1f} s, left in {done.leaving:.1f} s, paused for {done.pause:.2f} s, "
            f"removed here in {done.removing:.1f} s."
        )
        self.stdout.write(f"{done.arrived.new} accounts are new there. People sign in again.")
        for name, given in done.arrived.renamed.items():
            self.stdout.write(f"  {name} is called {given} there, where somebody else has that name.")
