"""What the words of tools and of people mean here: verbs by what they do, nouns by who writes them.

General vocabulary only: nothing here is the name of a tool. What is not listed is taken for the worse.
"""


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _sets(**groups: str) -> dict[str, frozenset[str]]:
    return {name: _set(words) for name, words in groups.items()}


# Verbs

READS = _set(
    "get list read search find view fetch show query check look lookup describe calculate compute "
    "count retrieve browse download summarize summarise think is has verify export compare inspect "
    "current explain analyze analyse extract identify recommend suggest determine translate "
    "discover visit preview locate estimate detect scan tail cat head diff validate"
)
PROVES = _set("verify confirm validate authenticate")  # an effect, where a code is given
PROOF = _set("otp code pin passcode token")

# Verbs that are as often nouns: in a tool's name they yield to a word that is only a verb.
NOUNS_TOO = _set(
    "list check view show query count look search download export email mail message text post order "
    "book record note plan copy store share report comment log input start transfer deposit purchase charge "
    "refund tip rent project schedule invite set contact update draft call play request place file branch "
    "release tag label star fork merge trigger build launch install answer ask reply broadcast "
    "open current preview save ride visit head cat diff block register grant permit wire tweet dm announce "
    "fund estimate lookup form run issue change move mark exchange return sign pay buy checkout cart"
)

# The verb in a tool's name → what the tool does.
MEANS = _sets(
    send="send email mail message reply respond forward notify inform text dm post publish announce "
    "contact broadcast submit remind tweet ask comment answer resend input fill",
    create="create make add schedule generate draft prepare append insert put save record log register "
    "upload start set write copy plan store new compose build open label tag note touch mkdir clone fork "
    "branch commit push import link attach setup",
    change="update change modify edit reschedule move rename set adjust replace correct alter append add "
    "mark extend shift postpone complete enable disable suspend resume exchange return assign switch "
    "convert put patch close reopen resolve turn turnon turnoff lock unlock pause pin unpin label tag "
    "archive restore reset configure toggle upgrade downgrade transition chmod sync star unstar watch like "
    "rate vote",
    delete="delete remove cancel drop clear erase discard unsubscribe revoke kick uninvite purge trash "
    "unfollow unlink unstar ban block destroy",
    share="share grant permit expose publish",
    invite="invite add enroll onboard include subscribe join follow",
    pay="pay transfer buy purchase order refund settle charge wire donate deposit tip reimburse withdraw "
    "repay checkout subscribe topup",
    book="book reserve rent order hail ride call request",
    run="run execute invoke deploy merge approve reject sign accept trigger launch install restart stop "
    "start rollback kill reboot shutdown",
    login="login signin logon switch authenticate connect",
)

# What is done → the further verbs in their base form by which a person asks for it.
_ALSO = _sets(
    send="write tell share let report raise",
    create="write book post comment publish start file raise report keep organize organise download note "
    "track backup duplicate",
    change="fix shorten write include increase decrease raise lower insert turn merge finish put push delay "
    "reset approve correct sort organize organise",
    delete="empty clean rid leave quit undo void close unshare",
    share="allow give send let invite",
    invite="ask bring",
    pay="send return spend cover give",
    book="schedule make arrange",
    run="start do perform build release ship push publish",
    login="log sign use access",
)
ASKS = {deed: verbs | _ALSO[deed] for deed, verbs in MEANS.items()}
VERBS = frozenset().union(*ASKS.values())
# The verbs of a sentence that asks for something, and of what is done by a bill.
ORDERS = (VERBS | READS) - _set("is has think current account note list bill")
SETTLES = (MEANS["pay"] | MEANS["change"]) - _set("order like watch star mark put")

# A basket is filled, emptied and left to buy something; a person says "buy".
BASKET = _set("cart basket trolley bag checkout")
# "Make a reservation", "request a refund": the deed stands in the noun.
LIGHT = _set(
    "make place request do get issue want need have give take start submit file perform arrange process set "
    "complete initiate apply go receive obtain"
)
NOUN_DEEDS = {
    noun: verb
    for verb, nouns in {
        "reserve": "reservation reservations booking bookings",
        "pay": "payment payments",
        "purchase": "purchase purchases",
        "order": "order orders",
        "refund": "refund refunds",
        "transfer": "transfer transfers transaction transactions",
        "cancel": "cancellation",
        "schedule": "appointment appointments reminder reminders meeting",
        "subscribe": "subscription",
        "invite": "invitation invitations",
        "update": "update updates",
        "change": "change changes",
        "copy": "copy backup",
        "deposit": "deposit",
        "donate": "donation donations",
        "post": "post comment comments",
        "exchange": "exchange",
        "return": "return returns",
        "delete": "deletion",
        "upload": "upload",
        "rent": "rental",
        "book": "ride taxi cab table seat ticket tickets",
    }.items()
    for noun in nouns.split()
}

# The same in Chinese, found anywhere in a request: it has no base forms to tell apart.
CHINESE = _sets(
    send="发送 发给 发一 发封 寄 回复 通知 告诉 告知 转发 发邮件 发消息 写信 发布 发到 提醒",
    create="创建 新建 添加 增加 安排 预约 建立 生成 写入 记录 保存 制作 撰写 起草",
    change="更新 修改 更改 改成 改到 改为 编辑 调整 移动 重命名 追加 加到 加入 推迟 提前 设置",
    delete="删除 取消 移除 清空 撤销 删掉 踢出",
    share="分享 共享 授权 给予",
    invite="邀请 加入 添加 加到",
    pay="支付 付款 付给 转账 汇款 退款 购买 缴 付清 打款 汇给",
    book="预订 预定 订一 租 订",
    run="运行 执行 部署 批准 安装 启动",
    login="登录 登陆",
)

# A word after one of these is a noun: "an email", "your message", "via text".
BEFORE_NOUNS = _set(
    "a an the this that these those my your his her our its their each every any some no another same "
    "new last first next all both which what following direct private one two three unread latest "
    "recent old received sent short brief quick nice whose s by via per"
)
ARTICLES = _set("the a an my your his her our their this that these those")
# "What did Ann write?" asks what was done, up to where another clause begins.
RECOUNTING = _set("did does didn didn't doesn doesn't")
CLAUSE_ENDS = _set(". , ; : ! ? and then please")
PREPOSITIONS = _set("in by from of for to with at on into about as per via after before and or given")

# Money and who may get in are not meant in passing: the request must speak of them.
MATTERS = _sets(
    money="transaction payment money transfer invoice bill fund funds deposit refund charge purchase card"
    " bitcoin btc crypto eth coin coins check cheque tip reward mandate iban payee beneficiary salary payroll"
    " payout order orders bank debit credit wallet bounty gift voucher donation",
    access="password credential credentials secret token permission permissions role access admin"
    " administrator owner key keys oauth login",
)
MATTER_WORDS = _sets(
    money="pay payment payments transaction transactions money transfer transfers invoice bill bills refund "
    "rent dollars dollar euro euros usd eur gbp chf $ € £ ¥ price fee fees fine subscription salary buy "
    "purchase deposit loan amount owe account checkout discount order orders spend budget iban bank wallet"
    " bitcoin btc crypto eth coin coins check cheque tip reward mandate beneficiary payee payroll payout"
    " donation donate voucher gift debit credit money book reserve rent",
    access="password credential credentials secret token key keys permission permissions role access login"
    " admin administrator owner grant invite",
)

# Nouns: what a tool is about tells who writes what its results hold.

CLOCK = _set("day date time now clock timezone weekday today")
DIRECTORY = _set(
    "contact contacts user users member members people person employee employees channel channels "
    "group groups team teams directory colleague colleagues participant participants role roles "
    "organization project projects department departments airport airports"
)
AGENDA = _set("calendar event events appointment appointments meeting meetings schedule agenda")
OWN = _set("balance account accounts profile iban me preferences settings quota")
ABOUT = _set("info information details data")  # whose, the noun before it says
SELF = _set("user my own account profile me self")
NETWORK = _set("web webpage website url http https internet page site link browser online feed rss")

# What these verbs return of these nouns is a text, and no record whatever it looks like.
READS_TEXT = _set("read get open fetch cat view load show head tail preview")
TEXTS = _set("file document attachment content text page note webpage body readme article log transcript")

# Fields in which people write freely, whoever keeps the record; and those of them too long to name it.
FREE = _set(
    "body content contents text description title subject note notes comment comments summary message "
    "messages location bio about review reviews details reason memo remark remarks caption snippet "
    "abstract answer question"
)
LONG = _set("body content contents text description message messages review reviews comment comments")

# Arguments

# They say what, not where to: the effect goes to the same place whatever they hold.
CONTENT = _set(
    "body content contents text message subject title description note notes comment comments summary "
    "caption question answer html markdown headline reason remark remarks memo greeting label topic "
    "location"
)
OPTION = _set(
    "date time datetime day start end begin until duration hours minutes timezone format language "
    "locale limit offset page count sort order_by color colour priority type kind mode permission "
    "importance status verbose recurring timestamp deadline due"
)
STEERING = _set(
    "to cc bcc recipient recipients address addresses email emails account iban url uri link path "
    "file filename folder channel user users member participant participants attendee attendees "
    "amount price total id ids destination target host domain phone number key password name command "
    "code query sql script repo branch owner group role attachments attachment"
)
IDENTIFIER = _set("id ids uuid number no key ref reference code")
REDUCTION = _set("discount coupon promo promotion voucher")  # a code of these lowers a price, and no more
QUANTITY = _set("quantity qty count copies guests people persons passengers adults seats")
HOW_MANY = _set("limit n count size max maximum top results entries")
AMOUNT = _set("amount price total sum cost value quantity budget fee")
ADDRESSED = _set("url uri link host domain")
TITLES = _set("title subject name label topic headline")
# They only say what kind of thing stands beside them, if their values are listed somewhere.
KINDS = _set("type kind format mode permission importance status priority")

# Values that may stand for each other: read as one of a family, used as another of it.
FAMILIES = (
    _set(
        "sender from author user username member participant attendee recipient to cc contact owner email "
        "address organizer reviewer assignee people person name account iban"
    ),
    _set("file attachment document path filename download invoice"),
    _set("amount price total cost fee balance sum fare value payment"),
    _set("channel room group team list recipient to"),
    _set("product item sku article"),
    _set("order purchase booking reservation"),
    _set("event meeting appointment calendar"),
    _set("repo repository project"),
    _set("restaurant hotel company place venue"),
)
GENERIC = _set("id ids uuid name title no number key ref reference code slug handle")
# Records whose every text somebody else wrote: only who and which of them the service says itself.
WRITTEN = _set(
    "email mail message inbox post comment review thread chat feed issue ticket tweet notification dm"
)
WHO = _set("id ids number sender from author user recipient recipients to cc channel")
AUTHOR = _set("sender from author user by")
RECEIVED = _set("transaction payment transfer")  # whoever sends a cent is their sender
GUESTS = _set("participant attendee guest invitee member")
PAID = _set("recipient payee beneficiary")
SENT_BY = _set("sender from author user recipient recipients to cc")
CORRESPONDENTS = SENT_BY | _set("correspondent writer addressee")
ANSWERS = _set("reply respond answer acknowledge thank thanks react")
MAILED = _set("com org net gmail hotmail yahoo outlook mail email example info www")
# Words that tell no record from another.
GLUE = _set(
    "the and for with from that this these those are was were has have had not but you your yours our out "
    "all any can could would should will shall may might must please them they their there then "
    "than also just only into onto over under about after before when where which what who whom whose how "
    "why its his her him she one two three some more most other others each every both same new old let get "
    "got make made "
    "need want like see use using via per yes now today yesterday tomorrow week month year day time don did "
    "does doing done been being first last next me my we us be is "
    "in on at to of or as by if so do"
)
RESTRICTS = _set("at of from in who whose called named near working")  # behind "all contacts"
ANY_THING = _set("item thing one entry")
LETTERS = _set("email mail message")  # what is sent, though fields with its name hold addresses
THEM = _set("them him her it this that")  # whom or what was spoken of before
TOWARDS = _set("to from with for cc bcc")
SOMEBODY = FAMILIES[0] - {"name"}  # fields that say who somebody is
WHOM = SOMEBODY | _set(  # arguments that do, too
    "handle login alias nick nickname payee beneficiary customer client chat conversation dm destination "
    "dest target mailbox inbox phone mobile telephone whatsapp telegram wallet acct counterparty employee "
    "guest invitee fax extension identity agent friend buyer seller subscriber viewer requester"
)
ROOMS = _set("channel room")  # of the organization
LINKS = _set("link website site page article webpage url blog video")
PASSED_ON = _set(
    "post posted share shared send sent email emailed mail mailed write wrote message article link website "
    "page forwarded forward recommend recommended mentioned"
)
TELLING = _set("what whether who whom whose which how why when where that if")
EVERY = _set("all every each everything everyone everybody others rest")
ATTRIBUTES = _sets(
    price="price cost fare rate amount fee total",
    rating="rating rate score stars rank",
    size="size length bytes",
    date="date time timestamp created updated modified start day",
    duration="duration minutes hours",
    distance="distance",
)
# Written with a capital wherever they stand, and nobody's name.
NOBODY = GLUE | _set(
    "monday tuesday wednesday thursday friday saturday sunday january february march july september october "
    "november december asap fyi eod eom english german french spanish italian chinese japanese portuguese "
    "dutch russian polish arabic turkish korean hindi european american british pdf csv html excel word "
    "powerpoint outlook google microsoft slack teams zoom christmas easter internet"
)
# Written with a capital at the beginning of a sentence, and no names. A verb may be one ("Mark").
NO_NAMES = (
    NOBODY
    | MAILED
    | READS
    | (VERBS - {"mark", "grant", "rob", "bill", "chase"})
    | _set("hi hello hey dear sure thanks")
)
