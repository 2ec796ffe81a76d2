"""A page for each problem that Deputy answers with: what its `type` points to (RFC 9457, 3.1.1).

The one table of codes. In English, as the API's own words are.
"""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path

from common.api.errors import slug

# By code: when it comes, and what to do.
CODES = {
    "AGENT_CHANGED": ("The person has another agent now, or the group other members.", "Start a new run."),
    "ALREADY_DECIDED": ("Somebody decided the approval otherwise.", "Read the approval; it is final."),
    "ALREADY_RESOLVED": ("Somebody has said otherwise what became of the call.", "Read the call."),
    "BAD_IDEMPOTENCY_KEY": (
        "The header Idempotency-Key is empty, too long, or not visible ASCII.",
        "Send up to 200 visible ASCII characters, such as a UUID.",
    ),
    "BAD_QUERY": ("A parameter of the query is unknown or does not fit.", "See `errors[].parameter`."),
    "BAD_REQUEST": ("The request cannot be read.", "See `detail`."),
    "BAD_TOKEN": ("The token is unknown, expired or revoked.", "Get another."),
    "BEGUN": ("Its server is at work on the call as it stands.", "Approve that, or reject it."),
    "BODY_CUT_SHORT": ("The body ended before its announced length.", "Send it again."),
    "BODY_TOO_LARGE": ("The body is too large.", "Send less; `BODY_BYTES` is the installation's limit."),
    "BUDGET_SECONDS": ("The run's time is used up, which ended it.", "Start another, or raise the budget."),
    "BUDGET_STEPS": ("The run's steps are used up, which ended it.", "Start another, or raise the budget."),
    "BUDGET_TOKENS": ("The run's tokens are used up, which ended it.", "Start another, or raise the budget."),
    "CALLS_OPEN": ("Calls of the run have not ended.", "Wait for those named in `open`, or resolve them."),
    "CALL_DIFFERS": (
        "The call id came before with another tool or other arguments.",
        "Use a new call id for a new call.",
    ),
    "CHANGED": (
        "What would run is not what you have seen.",
        "Read the approval named in `approval`, and decide with its `arguments_digest`.",
    ),
    "CONFIRM_FIRST": ("A person decides this, in a session confirmed lately.", "Confirm on /confirm/."),
    "CONFLICT": ("It collides with what somebody else has just done.", "Read it again, then decide."),
    "CSRF_FAILED": ("A browser's session came without X-CSRFToken.", "Send it, or use a token."),
    "DIGEST_MISSING": ("A decision has to name what it is about.", "Send the approval's `arguments_digest`."),
    "DISK_FULL": ("The database's disk is full.", "Try again later; whoever operates Deputy makes room."),
    "ERROR": ("The request was refused.", "See `detail`."),
    "EXPIRED": ("The time to decide is over.", "The agent may ask anew."),
    "EXTERNAL_RUN": ("An outside agent drives the run.", "Only runs that Deputy drives can run again."),
    "FORBIDDEN": ("You may not do this.", "Ask for the right, or use another token."),
    "GROUP_EMPTY": ("The group has no members.", "Add a member first."),
    "GROUP_NOT_ALLOWED": (
        "By today's rules the group of the run is not asked without a decision.",
        "Have your agent ask it anew.",
    ),
    "HTTPS_REQUIRED": ("A token has come in the clear.", "Ask over https, and get another token."),
    "HUMAN_ONLY": ("Only a person decides this, on Deputy's own pages.", "Open the approval in a browser."),
    "IDEMPOTENCY_KEY_REUSED": ("The key came before with another request.", "Use a new key."),
    "INTERNAL_ERROR": ("Something went wrong on Deputy's side; it was logged.", "Try again, or report it."),
    "INTERRUPTED_AGAIN": (
        "The call was tried again and interrupted again.",
        "Read the call, and send the `correlation_key` of its `waits_for`.",
    ),
    "INVALID": (
        "The body was read and does not fit.",
        "See `errors`: pointer, code and detail of each field.",
    ),
    "INVALID_ARGUMENTS": ("The arguments do not fit the tool's schema.", "See `errors`."),
    "IN_USE": ("Other things need it.", "Remove those first."),
    "LOCKED": ("Somebody else is at this at the moment.", "Ask again soon; nothing was changed."),
    "MALFORMED_JSON": ("The body is not JSON.", "Send JSON."),
    "METHOD_NOT_ALLOWED": ("The address does not take this method.", "See the header Allow."),
    "MOVED": ("The organization is in another cell.", "Ask at the address that `cell` names."),
    "MOVING": ("The organization is about to move.", "Ask again after Retry-After."),
    "NOT_ACCEPTABLE": ("Nothing that the header Accept asks for.", "Accept application/json."),
    "NOT_A_MEMBER": ("You belong to no such organization.", "Name one of yours in X-Organization."),
    "NOT_A_POINT": ("A run cannot go on from this event.", "Choose a message or a call's result."),
    "NOT_ENTITLED": ("You do not hold the right that this takes.", "Ask an administrator for it."),
    "NOT_EXTERNAL": ("Deputy drives this run itself.", "Start a run with the driver `external`."),
    "NOT_FOUND": ("There is no such thing, or it is not yours to see.", "Check the id and the token."),
    "NOT_READY": ("A part of the installation is not ready.", "Whoever operates Deputy sees which."),
    "NOT_THE_PERSON": ("The schedule speaks in the person's own words.", "Use a session of that person."),
    "NO_AGENT": ("You have no personal agent yet.", "Start a run: it is there afterwards."),
    "NO_SUCH_AGENT": ("Nobody of that id speaks in this run.", "See the run's `run.created`."),
    "NO_SUCH_EVENT": ("The run has no such event.", "Read its events."),
    "NO_SUCH_WAIT": ("Nothing waits for this key.", "Read the run's `waits`."),
    "ON_ITS_WAY": ("It has not been delivered or given up yet.", "Wait for its outcome."),
    "ORGANIZATION_MISSING": ("You are in several organizations.", "Name one in X-Organization."),
    "ORIGIN_REFUSED": ("Pages of this origin may not ask.", "Add it to CORS_ORIGINS, or ask from a program."),
    "OWN_RUN": ("You cannot decide this for your own run.", "Somebody else decides."),
    "PERMISSION_DENIED": ("Policy denies the call.", "See `detail`; another call may be allowed."),
    "POLICY_DENIES": ("With these arguments policy denies the call.", "Change them; the approval is open."),
    "PROJECT_MISSING": ("It is not said in which project.", "Name one in the address or the header."),
    "PROJECT_NOT_FOUND": ("No project of this id or slug is visible to you.", "List the projects."),
    "QUEUE_FULL": ("Too many runs of the organization wait.", "Ask again after Retry-After."),
    "REACHES_TOO_FAR": ("A token issues none that reaches further than itself.", "Ask for less."),
    "READ_ONLY": ("The database takes no changes at the moment.", "Ask again after Retry-After."),
    "RESOURCE_NOT_FOUND": ("No such project or group is visible to you.", "Check its id."),
    "RUN_ENDED": ("The run has ended.", "Start another."),
    "SCOPE_MISSING": ("The token lacks a scope.", "Issue one with the scope that `detail` names."),
    "SIGNAL_DIFFERS": ("The key was resolved with another payload.", "A signal is final: use another key."),
    "STALE": ("What the proposal is about has changed since.", "Propose it anew."),
    "STORAGE_FULL": ("The organization takes too much of the database.", "Have old runs removed."),
    "SUBJECT_NOT_FOUND": ("No such user, agent or role here.", "Check `subject`."),
    "TOO_MANY_APPROVALS": ("Too many calls wait for a decision.", "Ask again after Retry-After."),
    "TOO_MANY_CHANNELS": ("You have as many channels as one may.", "Delete one first."),
    "TOO_MANY_REQUESTS": ("You ask too often.", "Ask again after Retry-After; see RateLimit."),
    "TOO_MANY_SCHEDULES": ("You have as many schedules as one may.", "Delete one first."),
    "TOO_MANY_STREAMS": ("Too many streams and waiting requests are open.", "Close some."),
    "TOO_MANY_TOKENS": ("The account has as many tokens as fit.", "Revoke some first."),
    "TOO_MANY_TRIES": ("It was tried too often.", "Try again after the time that `detail` names."),
    "UNAUTHENTICATED": ("Nobody is known by this.", "Send `Authorization: Token dpt_…`."),
    "UNAVAILABLE": ("The database cannot be reached.", "Ask again after Retry-After."),
    "UNKNOWN_GROUP": ("No such group is in this project.", "List the project's groups."),
    "UNKNOWN_TOOL": ("There is no such tool.", "List the tools."),
    "UNSUPPORTED_MEDIA_TYPE": ("The body is not application/json.", "Send JSON, and say so."),
    "VERSION_NOT_SUPPORTED": ("Deputy does not speak this version.", "Use the one that `detail` names."),
    "invalid_operation": ("The page tree would not be a tree any more.", "Choose another place."),
    "not_found": ("There is no such page in the working memory.", "Read the view again."),
    "not_project_knowledge": ("Only a project's knowledge is promoted.", "See the memory's `type`."),
    "too_many_preferences": ("You have as many preferences as fit.", "Delete some first."),
    "wrong_state": ("The memory is in a state that does not allow it.", "See its `status`."),
}
BY_SLUG = {slug(code): code for code in CODES}


def index(request: HttpRequest) -> HttpResponse:
    """Every problem, with a link to its page."""
    listed = [(code, slug(code), when) for code, (when, _) in CODES.items()]
    return render(request, "problems.html", {"title": "Problems", "listed": listed})


def page(request: HttpRequest, name: str) -> HttpResponse:
    """One problem: when it comes, and what to do."""
    code = BY_SLUG.get(name)
    if code is None:
        raise Http404
    when, advice = CODES[code]
    return render(request, "problems.html", {"title": code, "when": when, "advice": advice})


urlpatterns = [path("", index), path("<slug:name>/", page)]
