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
    "current explain analyze analyse extract identify recommend suggest determine translate review "
    "discover"
)

# The verb a tool's name begins with → what the tool does.
MEANS = _sets(
    send="send email mail message reply respond forward notify inform text dm post publish announce "
    "contact broadcast submit remind tweet ask",
    create="create make add schedule generate draft prepare append insert put save record log register "
    "upload start set write copy plan store new compose build",
    change="update change modify edit reschedule move rename set adjust replace correct alter append add "
    "mark extend shift postpone complete enable disable suspend resume exchange return assign switch "
    "convert put patch",
    delete="delete remove cancel drop clear erase discard unsubscribe revoke kick uninvite purge trash "
    "unfollow",
    share="share grant permit expose",
    invite="invite add enroll onboard include subscribe join follow",
    pay="pay transfer buy purchase order refund settle charge wire donate deposit tip reimburse withdraw "
    "repay",
    book="book reserve rent order",
    run="run execute invoke deploy merge approve reject sign accept trigger launch install restart stop",
)

# What is done → the verbs in their base form by which a person asks for it.
ASKS = _sets(
    send="send email mail message reply respond forward notify inform text dm post publish announce write "
    "contact broadcast submit remind tweet tell ask share",
    create="create make add schedule generate draft prepare append insert put save record log register "
    "upload set write copy plan store note compose build book post publish start",
    change="update change modify edit reschedule move rename set adjust replace correct fix alter append add "
    "mark extend shift postpone shorten complete enable disable suspend resume exchange return assign "
    "switch convert put write include increase decrease raise lower insert",
    delete="delete remove cancel drop clear erase discard unsubscribe revoke kick uninvite purge empty trash "
    "unfollow",
    share="share grant permit allow give send expose publish",
    invite="invite add enroll onboard include subscribe join follow",
    pay="pay send transfer buy purchase order refund settle charge wire donate deposit tip reimburse "
    "return withdraw repay",
    book="book reserve rent order schedule make",
    run="run execute invoke deploy merge approve reject sign accept trigger launch install restart stop",
)
VERBS = frozenset().union(*ASKS.values())

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
)

# A word after one of these is a noun: "an email", "your message", "via text".
BEFORE_NOUNS = _set(
    "a an the this that these those my your his her our its their each every any some no another same "
    "new last first next all both which what following direct private one two three unread latest "
    "recent old received sent short brief quick nice whose s by via per"
)
# "What did Ann write?" asks what was done, up to where another clause begins.
RECOUNTING = _set("did does didn didn't doesn doesn't")
CLAUSE_ENDS = _set(". , ; : ! ? and then please")
PREPOSITIONS = _set("in by from of for to with at on into about as per via after before and or given")

# Money and who may get in are not meant in passing: the request must speak of them.
MATTERS = _sets(
    money="transaction payment money transfer invoice bill fund funds deposit refund charge purchase card",
    access="password credential secret token permission role access",
)
MATTER_WORDS = _sets(
    money="pay payment payments transaction transactions money transfer transfers invoice bill bills refund "
    "rent dollars dollar euro euros usd eur gbp chf $ € £ ¥ price fee fees fine subscription salary buy "
    "purchase deposit loan amount owe",
    access="password credential credentials secret token key permission permissions role access login",
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
AMOUNT = _set("amount price total sum cost value quantity budget fee")
ADDRESSED = _set("url uri link host domain")
TITLES = _set("title subject name label topic headline")
KINDS = _set("type kind format")  # they only say what kind of thing stands beside them
