"""Lexicon of nouns, people, places and adjectives.

Data only: tables of one entry a line, and the types that hold them. `=` as plural means the noun has only a
plural form ("pants"), `-` that it is a mass noun ("tea"). Tags say which verbs and adjectives go with a noun.
"""

from typing import Literal, NamedTuple

Gender = Literal["m", "f", "-"]


class Noun(NamedTuple):
    """A thing or an animal."""

    zh: str
    measure: str
    singular: str
    plural: str
    container: str
    tags: frozenset[str]


class Person(NamedTuple):
    """A kind of person ("doctor"), counted with its measure word."""

    zh: str
    measure: str
    singular: str
    plural: str
    profession: bool


class Named(NamedTuple):
    """A person with a name, or a relative of somebody."""

    zh: str
    en: str
    gender: Gender


class Place(NamedTuple):
    """A place one goes to (`en`) and is at (`at`)."""

    zh: str
    at: str
    en: str
    tags: frozenset[str]


class Adjective(NamedTuple):
    """An adjective; `attribute` says how it stands before a noun: "bare", with 的 ("de"), or never ("-")."""

    zh: str
    en: str
    comparative: str
    attribute: str
    tags: frozenset[str]


def rows(table: str) -> list[list[str]]:
    """The cells of a table: one row a line, cells divided by commas."""
    return [[cell.strip() for cell in line.split(",")] for line in table.strip().split("\n")]


_NOUNS = """
书, 本, book, books, -, read buy portable text
小说, 本, novel, novels, -, read write buy text
词典, 本, dictionary, dictionaries, -, use buy portable
杂志, 本, magazine, magazines, -, read buy text
报纸, 份, newspaper, newspapers, -, read buy
信, 封, letter, letters, -, read write receive mail
故事, 个, story, stories, -, tell write text
问题, 个, question, questions, -, ask answer problem
照片, 张, photo, photos, -, shoot look receive mail
地图, 张, map, maps, -, look buy draw portable
票, 张, ticket, tickets, -, reserve buy lose
画, 幅, painting, paintings, -, look buy pretty
桌子, 张, table, tables, -, buy big
床, 张, bed, beds, -, buy soft big
椅子, 把, chair, chairs, -, buy repair soft
伞, 把, umbrella, umbrellas, -, buy lose portable
钥匙, 把, key, keys, -, lose find
笔, 支, pen, pens, -, use buy portable
衬衫, 件, shirt, shirts, -, clothes buy wash colored
毛衣, 件, sweater, sweaters, -, clothes buy wash colored
大衣, 件, coat, coats, -, clothes buy wash colored
裤子, 条, pants, =, pair, clothes buy wash colored
裙子, 条, skirt, skirts, -, clothes buy wash colored pretty
鞋, 双, shoes, =, pair, clothes buy wash colored
手套, 双, gloves, =, pair, accessory buy lose wash
眼镜, 副, glasses, =, pair, accessory buy lose find
帽子, 顶, hat, hats, -, accessory buy wash colored
手表, 块, watch, watches, -, accessory buy lose repair
狗, 只, dog, dogs, -, pet animal see
猫, 只, cat, cats, -, pet animal see
鸟, 只, bird, birds, -, pet animal draw see
鱼, 条, fish, fish, -, pet dish draw
马, 匹, horse, horses, -, ride draw see animal
牛, 头, cow, cows, -, draw see
车, 辆, car, cars, -, drive buy repair wash colored sell vehicle
自行车, 辆, bicycle, bicycles, -, ride buy repair colored sell vehicle
苹果, 个, apple, apples, -, food buy wash fruit
西瓜, 个, watermelon, watermelons, -, food buy fruit
鸡蛋, 个, egg, eggs, -, food buy dish
面包, 块, bread, -, piece, food buy dish
蛋糕, 块, cake, -, piece, food buy dish
米饭, 碗, rice, -, bowl, food dish
汤, 碗, soup, -, bowl, drink dish
饺子, 盘, dumplings, =, plate, food dish
茶, 杯, tea, -, cup, drink beverage
咖啡, 杯, coffee, -, cup, drink beverage
水, 杯, water, -, glass, drink
牛奶, 杯, milk, -, glass, drink beverage
啤酒, 瓶, beer, -, bottle, drink beverage
手机, 部, cell phone, cell phones, -, buy lose use repair device
电脑, 台, computer, computers, -, buy use repair device sell
电视, 台, television, televisions, -, buy repair device sell
相机, 台, camera, cameras, -, buy lose use repair device portable
洗衣机, 台, washing machine, washing machines, -, buy use repair device sell
电影, 部, movie, movies, -, watch text
比赛, 场, game, games, -, watch
歌, 首, song, songs, -, sing hear
房子, 栋, house, houses, -, buy sell see big pretty
山, 座, mountain, mountains, -, see draw
桥, 座, bridge, bridges, -, see draw
树, 棵, tree, trees, -, plant draw see
花, 朵, flower, flowers, -, draw see colored pretty
礼物, 件, gift, gifts, -, buy receive mail portable
包, 个, bag, bags, -, buy lose find colored heavy
钱包, 个, wallet, wallets, -, buy lose find
杯子, 个, cup, cups, -, buy wash break
"""

_PERSONS = """
老师, 位, teacher, teachers, profession
学生, 个, student, students, profession
医生, 位, doctor, doctors, profession
护士, 位, nurse, nurses, profession
司机, 位, driver, drivers, profession
经理, 位, manager, managers, profession
服务员, 个, waiter, waiters, profession
警察, 个, police officer, police officers, profession
同学, 个, classmate, classmates, person
朋友, 个, friend, friends, person
孩子, 个, child, children, person
男孩, 个, boy, boys, person
女孩, 个, girl, girls, person
老人, 位, old man, old men, person
客人, 位, guest, guests, person
工人, 个, worker, workers, profession
歌手, 位, singer, singers, profession
"""

_KIN = """
爸爸, father, m
妈妈, mother, f
哥哥, older brother, m
弟弟, younger brother, m
姐姐, older sister, f
妹妹, younger sister, f
爷爷, grandfather, m
奶奶, grandmother, f
儿子, son, m
女儿, daughter, f
妻子, wife, f
丈夫, husband, m
"""

_NAMES = """
小明, Xiaoming, m
小红, Xiaohong, f
大卫, David, m
玛丽, Mary, f
王先生, Mr. Wang, m
张女士, Ms. Zhang, f
陈女士, Ms. Chen, f
"""

_PLACES = """
家, at home, home, home
学校, at school, school, study sport
图书馆, in the library, the library, study quiet
教室, in the classroom, the classroom, study inside
办公室, in the office, the office, work inside
公司, at the company, the company, work
公园, in the park, the park, sport walk
医院, at the hospital, the hospital, medical
饭馆, at the restaurant, the restaurant, meal
咖啡馆, at the cafe, the cafe, study drink
商店, at the store, the store, shop
超市, at the supermarket, the supermarket, shop
市场, at the market, the market, shop
银行, at the bank, the bank, bank
邮局, at the post office, the post office, post
机场, at the airport, the airport, travel
火车站, at the train station, the train station, travel
电影院, at the movie theater, the movie theater, film
动物园, at the zoo, the zoo, walk
体育馆, at the gym, the gym, sport swim
厨房, in the kitchen, the kitchen, cook inside
房间, in the room, the room, home inside
北京, in Beijing, Beijing, city
上海, in Shanghai, Shanghai, city
中国, in China, China, city
美国, in America, America, city
法国, in France, France, city
日本, in Japan, Japan, city
"""

_ADJECTIVES = """
红, red, -, bare, colored
白, white, -, bare, colored
黑, black, -, bare, colored
蓝, blue, -, bare, colored
新, new, newer, bare, buy
旧, old, older, bare, vehicle device clothes
大, big, bigger, bare, big fruit
小, small, smaller, bare, big fruit
便宜, cheap, cheaper, de, buy
贵, expensive, more expensive, -, buy
漂亮, beautiful, more beautiful, de, clothes pretty
好吃, delicious, more delicious, de, dish fruit
新鲜, fresh, fresher, de, fruit
好喝, tasty, tastier, -, beverage
有意思, interesting, more interesting, de, text watch
难, difficult, more difficult, -, problem
简单, simple, simpler, de, problem
可爱, cute, cuter, de, animal
重, heavy, heavier, -, heavy
快, fast, faster, -, vehicle
聪明, smart, smarter, de, person
年轻, young, younger, de, person
热情, friendly, friendlier, de, person
有名, famous, more famous, de, person
高, tall, taller, -, person
忙, busy, busier, -, state
累, tired, more tired, -, state
饿, hungry, hungrier, -, state
高兴, happy, happier, -, state
生气, angry, angrier, -, state
"""

NOUNS = [
    Noun(zh, measure, singular, plural, container, frozenset(tags.split()))
    for zh, measure, singular, plural, container, tags in rows(_NOUNS)
]
PERSONS = [
    Person(zh, measure, singular, plural, sort == "profession")
    for zh, measure, singular, plural, sort in rows(_PERSONS)
]
KIN = [Named(zh, en, "m" if gender == "m" else "f") for zh, en, gender in rows(_KIN)]
NAMES = [Named(zh, en, "m" if gender == "m" else "f") for zh, en, gender in rows(_NAMES)]
PLACES = [Place(zh, at, en, frozenset(tags.split())) for zh, at, en, tags in rows(_PLACES)]
ADJECTIVES = [
    Adjective(zh, en, comparative, attribute, frozenset(tags.split()))
    for zh, en, comparative, attribute, tags in rows(_ADJECTIVES)
]


def nouns_with(tag: str) -> list[Noun]:
    """The nouns that carry `tag`."""
    return [noun for noun in NOUNS if tag in noun.tags]


def places_with(tag: str) -> list[Place]:
    """The places that carry `tag`."""
    return [place for place in PLACES if tag in place.tags]


def attributes_of(noun: Noun) -> list[Adjective]:
    """The adjectives that may stand before `noun`."""
    return [adjective for adjective in qualities_of(noun.tags) if adjective.attribute != "-"]


def qualities_of(tags: frozenset[str]) -> list[Adjective]:
    """The adjectives that share a tag with `tags`."""
    return [adjective for adjective in ADJECTIVES if adjective.tags & tags]
