"""Lexicon of verbs: set activities, transitive verbs, verbs of disposal, states.

Data only. In an activity the translation of the verb depends on its object (打电话 "make a phone call",
打篮球 "play basketball"); `{my}` stands for the possessive of the subject.
"""

from typing import NamedTuple

from .nouns import rows


class Activity(NamedTuple):
    """A verb with its set object (either may be empty on a side), where one does it, and whether it can last.

    `places` is the tag of the places, "-" for none, or "minor" for small acts that nobody plans or remembers.
    """

    verb: str
    object: str
    en_verb: str
    en_object: str
    places: str
    lasting: bool


class Transitive(NamedTuple):
    """A verb whose objects are the nouns with tag `takes`; `event` verbs are only told of the past."""

    zh: str
    en: str
    takes: str
    told: str


class Disposal(NamedTuple):
    """A 把/被 verb with its result, the English verb, what follows the English object, tag of the objects."""

    zh: str
    en: str
    after: str
    takes: str
    passive: bool


_ACTIVITIES = """
打, 电话, make, a phone call, home, no
打, 篮球, play, basketball, sport, yes
打, 网球, play, tennis, sport, yes
打, 车, take, a taxi, -, no
打, 针, get, an injection, medical, no
打, 太极拳, do, tai chi, walk, yes
踢, 足球, play, soccer, sport, yes
开, 车, drive, a car, -, yes
开, 会, have, a meeting, work, yes
开, 灯, turn on, the light, minor, no
开, 门, open, the door, minor, no
开, 玩笑, tell, jokes, -, no
开, 飞机, fly, a plane, -, yes
关, 灯, turn off, the light, minor, no
关, 门, close, the door, minor, no
看, 书, read, books, study, yes
看, 报, read, the newspaper, home, yes
看, 电影, watch, movies, film, yes
看, 电视, watch, television, home, yes
看, 医生, see, a doctor, medical, no
看, 比赛, watch, games, sport, yes
上, 课, have, class, study, yes
上, 班, go, to work, -, no
上, 网, go, online, home, yes
下, 课, finish, class, minor, no
下, 班, get off, work, minor, no
下, 棋, play, chess, home, yes
做, 饭, cook, meals, cook, yes
做, 作业, do, {my} homework, study, yes
做, 运动, get, exercise, sport, yes
做, 生意, do, business, city, yes
写, 字, write, characters, study, yes
写, 信, write, letters, home, yes
吃, 饭, have, a meal, meal, no
吃, 早饭, have, breakfast, meal, no
吃, 午饭, have, lunch, meal, no
吃, 晚饭, have, dinner, meal, no
吃, 药, take, medicine, medical, no
坐, 飞机, take, the plane, -, no
坐, 火车, take, the train, -, no
坐, 地铁, take, the subway, -, no
坐, 公共汽车, take, the bus, -, no
骑, 马, ride, a horse, -, yes
骑, 自行车, ride, a bicycle, walk, yes
听, 音乐, listen to, music, home, yes
说, 中文, speak, Chinese, study, yes
说, 英语, speak, English, study, yes
学, 中文, study, Chinese, study, yes
学, 英语, study, English, study, yes
教, 英语, teach, English, city, no
唱, 歌, sing, songs, home, yes
跳, 舞, dance, , sport, yes
画, 画, draw, pictures, home, yes
弹, 钢琴, play, the piano, home, yes
弹, 吉他, play, the guitar, home, yes
玩, 游戏, play, video games, home, yes
洗, 澡, take, a bath, home, no
洗, 手, wash, {my} hands, minor, no
洗, 衣服, wash, clothes, home, yes
洗, 碗, do, the dishes, cook, no
换, 衣服, change, clothes, home, no
换, 钱, exchange, money, bank, no
买, 东西, shop, , shop, no
买, 菜, buy, groceries, shop, no
借, 书, borrow, books, quiet, no
照, 相, take, pictures, walk, no
发, 邮件, send, emails, work, no
寄, 包裹, mail, packages, post, no
爬, 山, climb, mountains, -, yes
过, 生日, celebrate, {my} birthday, meal, no
睡, 觉, sleep, , home, yes
起, 床, get up, , minor, no
游, 泳, swim, , swim, yes
跑, 步, jog, , walk, yes
散, 步, take, a walk, walk, no
打扫, 房间, clean, the room, -, yes
休息, , rest, , home, yes
工作, , work, , work, yes
学习, , study, , study, yes
旅行, , travel, , city, yes
"""

_TRANSITIVES = """
买, buy, buy, often
卖, sell, sell, once
看, read, read, often
看, watch, watch, often
看, look at, look, often
写, write, write, often
吃, eat, food, often
喝, drink, drink, often
穿, wear, clothes, often
戴, wear, accessory, often
画, draw, draw, once
唱, sing, sing, often
听, listen to, hear, often
拍, take, shoot, once
修, repair, repair, once
洗, wash, wash, often
带, bring, portable, once
用, use, use, often
养, raise, pet, once
种, plant, plant, once
问, ask, ask, often
回答, answer, answer, often
讲, tell, tell, often
开, drive, drive, often
骑, ride, ride, often
寄, mail, mail, often
订, reserve, reserve, once
看见, see, see, past
丢, lose, lose, past
找到, find, find, past
打破, break, break, past
收到, receive, receive, past
"""

_PERSON_VERBS = """
见, meet, once
帮助, help, once
等, wait for, once
看见, see, past
遇到, run into, past
邀请, invite, once
感谢, thank, once
照顾, take care of, once
批评, criticize, once
拜访, visit, once
"""

_DISPOSALS = """
洗 干净, wash, clean, wash, yes
修 好, repair, , repair, yes
看 完, finish reading, , read, no
写 完, finish writing, , write, no
吃 完, eat, up, food, yes
喝 完, drink, up, drink, yes
卖 掉, sell, , sell, yes
弄 丢, lose, , lose, yes
打 破, break, , break, yes
偷 走, steal, , device, yes
借 走, borrow, , vehicle, yes
拿 走, take, away, portable, yes
骑 走, ride, away, ride, yes
带 回 家, bring, home, portable, no
带 到 学校 去, take, to school, text, no
放 在 桌子 上, put, on the table, portable, no
放 在 包 里, put, in the bag, accessory, no
忘 在 家 里, leave, at home, lose, no
忘 在 车 上, leave, in the car, portable, no
"""

_RECEIVER_DISPOSALS = """
送 给, give, portable
还 给, return, portable
借 给, lend, use
寄 给, mail, mail
卖 给, sell, sell
"""

ACTIVITIES = [
    Activity(verb, object_, en_verb, en_object, places, lasting == "yes")
    for verb, object_, en_verb, en_object, places, lasting in rows(_ACTIVITIES)
]
TRANSITIVES = [Transitive(*row) for row in rows(_TRANSITIVES)]
PERSON_VERBS = [Transitive(zh, en, "person", told) for zh, en, told in rows(_PERSON_VERBS)]
DISPOSALS = [
    Disposal(zh, en, after, takes, passive == "yes") for zh, en, after, takes, passive in rows(_DISPOSALS)
]
RECEIVER_DISPOSALS = [(zh, en, takes) for zh, en, takes in rows(_RECEIVER_DISPOSALS)]
