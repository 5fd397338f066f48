"""Utterances about flights from a grammar of our own: fourteen intents, about 900 words, two dialects.

The dialect is the private attribute. It is drawn by a fair coin apart from the intent, and shows in the choice of words
of most utterances, not of all: some hold no word that gives it away, and some speakers borrow the other dialect's.

A rule reads: `(a|b)` is a or b; `<a/b>` is a in British and b in American; `{name}` is another rule or a list of words.
"""

from __future__ import annotations

import random
import re

from dpassay.errors import InputError
from dpassay.text.corpora.corpus import Utterance

DIALECTS = ("british", "american")
BORROWED = 0.03  # how often a speaker takes the other dialect's word
SHORTEST, LONGEST = 3, 25

INTENTS = {  # in percent
    "flight": 24,
    "airfare": 12,
    "ground_service": 9,
    "airline": 8,
    "cheapest": 8,
    "flight_time": 8,
    "aircraft": 6,
    "meal": 5,
    "quantity": 5,
    "airport": 4,
    "abbreviation": 3,
    "capacity": 3,
    "distance": 3,
    "city": 2,
}

WORDS = {
    "town": "abuja, addis ababa, adelaide, amman, amsterdam, ankara, asuncion, athens, baku, bali, bamako, bangkok, "
    "barcelona, beijing, beirut, belgrade, berlin, bilbao, brasilia, bratislava, brisbane, bucharest, budapest, "
    "cairo, calgary, canberra, caracas, cardiff, chennai, cologne, colombo, cordoba, cork, damascus, darwin, delhi, "
    "doha, dubai, durban, edinburgh, edmonton, frankfurt, fukuoka, genoa, glasgow, goa, graz, halifax, harare, "
    "havana, helsinki, hong kong, honolulu, istanbul, jaipur, jakarta, johannesburg, kampala, kigali, kingston, "
    "krakow, kuwait, kyiv, leeds, leipzig, lille, lisbon, liverpool, lusaka, luxembourg, lyon, madrid, malaga, "
    "manaus, manchester, manila, marrakesh, marseille, mexico city, milan, minsk, monterrey, montevideo, mumbai, "
    "munich, muscat, nairobi, naples, osaka, oslo, ottawa, panama city, paris, porto, prague, pretoria, rabat, "
    "recife, rio, riyadh, rome, salvador, salzburg, sao paulo, sapporo, sarajevo, seville, shanghai, split, "
    "stavanger, stockholm, suva, sydney, tangier, tashkent, tbilisi, tokyo, toronto, tripoli, tunis, turin, "
    "valencia, valletta, verona, vienna, vilnius, wellington, windhoek, yangon, yerevan, zagreb, zurich",
    "carrier": "albatross airways, arctic tern, aurora air, bluebell airlines, borealis, cedar air, cloudberry, "
    "condottiere, coral air, dragonfly, dune airlines, evergale, falconer, golden plover, harvest air, indigo crane, "
    "ivory air, kestrel, lantern airlines, lodestar, lotus airways, maple jet, meridiana, monsoon air, nimbus, "
    "olive air, opaline, osprey, pelican air, puffin air, quetzal, saffron airways, sandpiper, skylark, snowgoose, "
    "starling, sunstone airlines, tidewater air, tundra airways, wayfarer, zephyr",
    "code": "akl, ath, bos, cai, cph, del, dub, eze, gru, hel, hnd, ist, kef, lim, mad, muc, osl, prg, tlv, waw, "
    "yvr, zrh",
    "day": "monday, tuesday, wednesday, thursday, friday, saturday, sunday",
    "month": "january, february, march, april, may, june, july, august, september, october, november, december",
    "ordinal": "first, second, third, fourth, fifth, sixth, seventh, eighth, ninth, tenth, eleventh, twelfth, "
    "thirteenth, fourteenth, fifteenth, sixteenth, seventeenth, eighteenth, nineteenth, twentieth, twenty first, "
    "twenty second, twenty third, twenty fourth, twenty fifth, twenty sixth, twenty seventh, twenty eighth, "
    "twenty ninth, thirtieth",
    "hour": "one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve",
    "digit": "zero, one, two, three, four, five, six, seven, eight, nine",
    "few": "two, three, four, five, six",
    "tens": "twenty, thirty, forty, fifty, sixty, seventy, eighty, ninety",
    "plane": "boeing, embraer, bombardier, cessna, tupolev, antonov, dreamliner, turboprop, jumbo jet, biplane, "
    "wide body, narrow body, regional jet, twin engine, propeller, glider, caravelle, concorde",
    "dish": "curry, salad, sandwich, risotto, omelette, noodles, dumplings, paella, falafel, stew, pancakes, fruit, "
    "cheese, pudding, rice, chicken, beef, tofu, coffee, wine, beer",
    "diet": "vegetarian, vegan, kosher, halal, gluten free, diabetic, dairy free, low salt, nut free, hindu, jain, "
    "pescatarian, organic, children's",
    "family": "wife, partner, daughter, son, brother, uncle, aunt, niece, nephew, grandmother, boss, colleague, "
    "secretary, trainer, editor, team, orchestra, teacher, lawyer, nurse, dentist, guest",
    "occasion": "wedding, conference, meeting, interview, honeymoon, reunion, concert, marathon, regatta, "
    "exhibition, anniversary, birthday, pilgrimage, ski trip, safari, cruise, premiere, opera, tournament, "
    "operation, hearing, auction",
    "luggage": "suitcase, bicycle, surfboard, cello, rucksack, drum, canoe, dog, cat, parrot, telescope, snowboard, "
    "kayak, typewriter, sewing machine, painting",
    "place": "stadium, museum, station, beach, castle, cathedral, embassy, library, market, old town, waterfront, "
    "botanical garden, convention hall, ferry terminal, racecourse, vineyard, observatory, palace, lighthouse",
    "coin": "euros, yen, francs, crowns, rupees, pesos",
    "quality": "comfortable, reliable, convenient, quick, punctual, pleasant, flexible, decent, ordinary, sensible, "
    "simple, suitable",
    "country": "norway, brazil, kenya, canada, peru, india, egypt, vietnam, morocco, turkey, iceland, thailand, ghana",
}

RULES = {
    # how a speaker begins and ends
    "show": "show me|give me|find me|i need|i'm looking for|i would like|<please could i have/can i please get>|"
    "<i should like/i'd like to get>|<might i see/go ahead and show me>|<have you got/do you have>|"
    "<i rather fancy/i'm gonna need>|list",
    "tell": "tell me|can you tell me|i'd like to know|do you know|"
    "<would you kindly tell me/please go ahead and tell me>|<i wonder if you know/i was just wondering>|"
    "<could you let me know please/let me know real quick>|<may i ask/so tell me>",
    "hello": "||||||||||hello|excuse me|<sorry/hi there>|<right then/okay so>|<hiya/hey>|<hullo/howdy>|"
    "<now then/alright>|<hiya/hey>|<pardon/say>",
    "bye": "|||||||please|<cheers/thanks>|<ta/you guys>|<kindly/okay>|<thanks ever so/appreciate it>|"
    "<lovely/awesome>|<brilliant/great>|<cheers/thanks folks>|<when you've a moment/real quick>",
    "who": "|||||||for me and my (<mum/mom>|<dad/daddy>|{family}|{family})|for (a|the) {occasion}|"
    "for {few} (adults|passengers|people|<pensioners/seniors>|<travellers/travelers>)|"
    "for (our|my) <summer holiday/summer vacation>|for a <football match/soccer game>|"
    "with (a|my) (<pushchair/stroller>|<pram/baby carriage>|{luggage}|{luggage})",
    # where and when
    "route": "from {town} to {town}|to {town} from {town}|between {town} and {town}|out of {town} to {town}|"
    "{town} to {town}|to {town}|from {town}|into {town}|to {town}",
    "via": "via {town}|through {town}|with a (stop|<stopover/layover>) in {town}|changing in {town}",
    "holiday": "easter|christmas|<bonfire night/thanksgiving>|<the bank holiday/labor day>|"
    "<boxing day/independence day>|new year's eve|diwali|ramadan|<whitsun/memorial day>|<half term/spring break>",
    "when": "|on {day}|next {day}|{day} {part}|tomorrow|in {month}|in (early|late|) {month}|"
    "in (spring|summer|winter)|over {holiday}|<{day} week/a week from {day}>|<in a fortnight/in two weeks>|"
    "<on the {ordinal} of {month}/on {month} {ordinal}>|<on the {ordinal} of {month}/{month} {ordinal}>|"
    "<the {ordinal} of {month}/{month} {ordinal}>|<at the weekend/on the weekend>|<in the autumn/in the fall>|"
    "<a fortnight on {day}/two weeks from {day}>|<in a fortnight's time/two weeks from now>|"
    "<the day after tomorrow/day after tomorrow>",
    "part": "morning|afternoon|evening|night",
    "clock": "<half past {hour}/{hour} thirty>|<quarter past {hour}/{hour} fifteen>|"
    "<quarter to {hour}/{hour} forty five>|{hour} o'clock|{hour} (am|pm)|{hour} in the (morning|evening)|"
    "<midday/noon>|midnight|<ten past {hour}/ten after {hour}>",
    "time": "(before|after|around|by|at) {clock}|(before|after|around|by|at) {clock}|"
    "in the (morning|afternoon|evening)|overnight|at (dawn|sunrise|dusk)|as (early|late) as possible|"
    "<straight away/right away>",
    # what is asked for
    "flights": "(a|the next|the first|the last|any) flight|flights|all flights|"
    "(direct|non stop|nonstop|connecting) flights|{quality} flights|"
    "a (<return/round trip>|<return/round trip>|<single/one way>) flight|flights on {carrier}",
    "ticket": "a ticket|a (<return/round trip>|<single/one way>|<return/round trip>) ticket|a seat in {class}|"
    "a (first|business) class ticket|<a return/a round trip>|<a single/a one way>",
    "class": "first class|business class|<economy/coach>|<economy/coach>|premium <economy/coach>|"
    "<tourist/main cabin> class",
    "number": "flight {digit} {digit}|flight number {digit} {digit}|{carrier} flight {digit} {digit}|"
    "flight {digit} {digit} {digit}|{carrier} {digit} {digit}",
    "money": "{few} hundred {cash}|{tens} {cash}|{few} thousand {cash}",
    "cash": "<pounds/dollars>|<quid/bucks>|<pounds/dollars>|{coin}|{coin}",
    "machine": "<aeroplane/airplane>|plane|aircraft|<aeroplane/airplane>|jet",
    "ride": "taxi|bus|train|shuttle|limousine|ferry|<hire car/rental car>|<underground/subway>|<coach/shuttle bus>|"
    "<minicab/cab>|<tram/streetcar>|<estate car/station wagon>|<lorry/truck>|<people carrier/minivan>|"
    "<motorbike/motorcycle>|helicopter|<caravan/trailer>",
    "middle": "<city centre/downtown>|<town centre/downtown area>|<harbour/harbor>|{place}|{place}|{place}|"
    "<theatre/theater>|<cinema/movie theater>|<shopping centre/mall>|<railway station/train station>|"
    "<car park/parking lot>",
    "meal_name": "breakfast|lunch|dinner|a snack|<tea/supper>|<pudding/dessert>|<crisps/chips>|<biscuits/cookies>|"
    "<sweets/candy>|a {diet} (meal|dish|option)|a {diet} (meal|dish|option)|{dish}|{dish}|<aubergine/eggplant>|"
    "<fizzy drinks/soda>|<courgettes/zucchini>",
    # the intents
    "flight": "{show} {flights} {route} {when} {who}|{show} {flights} {route} {time}|"
    "{show} {flights} {route} {via} {when}|i (want|need|have|hope) to (fly|travel|go|get) {route} {when} {who}|"
    "(which|what) flights (leave|<depart/go out of>) {town} for {town} {when} {time}|"
    "is there a {quality} flight {route} {when}|(are there|<have you/do you have>) any flights {route} {time}|"
    "my {family} (would like|wants|needs) to be in {town} {when} {time}|<please book me/book me> on {number} {when}|"
    "i'd (like|prefer) to leave {town} {when} and <return/come back> {when}|flights {route} {when}|"
    "<i'm flying out to/i'm heading out to> {town} {when} and need a flight <home/back home> {time}",
    "airfare": "{tell} (the|what is the) (fare|price) {route} {when}|"
    "how much (is|does it cost for|would you charge for) {ticket} {route} {when}|"
    "what (does|would) {ticket} {route} cost {who}|{show} fares {route} {when}|what are the {class} fares {route}|"
    "{show} {ticket} {route} for (less than|under|at most) {money}|the price of {ticket} {route} {who}|"
    "could i (fly|get) {route} for {money} {when}|<how dear is/how pricey is> {ticket} {route}",
    "ground_service": "how (do|can) i get from the airport (in {town}|) to the {middle}|"
    "{show} ground transport from {town} airport to the {middle}|"
    "is there a {ride} (between|linking) the airport and the {middle} in {town}|"
    "(can i|<may i/could i>) (<hire/rent>|take|book) a {ride} in {town} {when}|"
    "what <car hire/car rental> is there in {town} {who}|{tell} about <car hire/car rental> (companies|) at {town}|"
    "i (need|want) a {ride} to the {middle} of {town} {time}|"
    "who will <collect me/pick me up> at {town} airport {time}|"
    "{show} a {ride} big enough for {few} people and a {luggage}",
    "airline": "(which|what) (airlines|carriers) (fly|go) {route} {when}|{tell} which airlines serve {town}|"
    "is {carrier} the (only|best) airline {route}|does {carrier} fly {route} {when}|"
    "who (flies|runs flights) {route} {when}|which airline is <on strike/striking> in {town} {when}|"
    "{show} the airlines that (stop|land) in {town}|"
    "(does|would) {carrier} or {carrier} <fly more often/fly more> {route}",
    "cheapest": "{show} the (cheapest|least expensive|lowest) (fare|ticket|way) {route} {when}|"
    "what is the (cheapest|least expensive) (way|flight|<return/round trip>) {route}|"
    "(are there|<have you got/you got>) any (bargains|discounts|special offers|<cheap deals/deals>) {route} {when}|"
    "i (only have|can spend|can't spend more than) {money} what is the cheapest way {route}|"
    "the (lowest|cheapest) {class} fare {route} {when}|(which|what) day is (cheapest|least expensive) to fly {route}|"
    "<i'm skint so find/i'm broke so find> the cheapest flight {route}",
    "flight_time": "when does {number} (leave|arrive|land|take off|<get in/pull in>) (in {town}|)|"
    "{tell} when the (first|last|next) flight {route} (leaves|arrives|lands)|"
    "{show} the <timetable/schedule> {route} {when}|{show} (departure|arrival) times {route} {when}|"
    "how long (is the flight {route}|does the flight {route} take)|"
    "is {number} (delayed|on time|late|<cancelled/canceled>) {when}|"
    "what time (do|must|should) i (check in|board|be at the gate) for {number}|"
    "does {number} land (before|after) {clock}",
    "aircraft": "what (kind|type|sort) of {machine} (is used|flies|goes) {route}|"
    "is {number} (a|flown with a) {plane} {when}|{tell} which {machine} {carrier} uses {route}|"
    "{show} flights {route} on a {plane} {when}|does {carrier} (own|fly|have) a {plane}|"
    "how old is the {machine} on {number}|what is a {plane} (like|) compared with a {plane}|"
    "(which|what) {machine} has (propellers|<tyres/tires>|<grey/gray> wings|<aluminium/aluminum> seats) on {number}",
    "meal": "(do you|will they|does {carrier}) serve {meal_name} {route}|is {meal_name} served on {number}|"
    "i'd like {meal_name} on my flight to {town} {when}|{tell} what there is to eat on {number}|"
    "can my {family} (have|<have/get>|order) {meal_name} on the flight to {town}|"
    "{show} the (menu|meals) on {number} {when}|is there any {dish} or {dish} on board {route}|"
    "does {carrier} (offer|bring) {meal_name} in {class}",
    "quantity": "how many flights (are there|go|leave) {route} {when}|how many flights does {carrier} have {route}|"
    "{tell} how many (stops|<changes/transfers>|<stopovers/layovers>) there are {route}|"
    "how many (seats|places|tickets) are left on {number} {when}|how many (airlines|flights) serve {town}|"
    "the number of {quality} flights {route} {when}|how often does {carrier} fly {route} each <fortnight/two weeks>",
    "airport": "which airport (is|lies) (closest|nearest) to the {middle} in {town}|"
    "{tell} the name of the airport in {town}|how many <car parks/parking lots> does {town} airport have|"
    "which terminal does {carrier} use in {town}|{show} the airports (near|around|in) {town}|"
    "where (is|will i find) the ({carrier} desk|lounge|<lift/elevator>|<toilet/restroom>|<queue/line> for customs|"
    "<chemist/drugstore>|<cash machine/atm>) at {town} airport|which airport do flights {route} use {when}",
    "abbreviation": "what does (the code|) {code} (mean|stand for)|what is {code}|"
    "{tell} what {code} (means|stands for) on my (ticket|boarding pass|<booking/reservation>|<timetable/schedule>)|"
    "(explain|spell out|<please explain/go ahead and explain>) the (code|letters|abbreviation) {code}|"
    "is {code} the code (for|of) {town}",
    "capacity": "how many (passengers|people|<travellers/travelers>) (fit|can sit) in a {plane}|"
    "{tell} the (capacity|seating capacity) of (a|the) {plane}|how (large|big|roomy) is the {machine} on {number}|"
    "how many {class} seats does a {plane} have|can a {plane} carry {few} hundred (people|passengers) {route}|"
    "what is the (most|largest number) of (<suitcases/bags>|people) (a|the) {plane} holds|"
    "is there (room|space) for a {luggage} on {number}",
    "distance": "how far (is it|apart are|away is) {town} (and|from) {town}|"
    "how many (miles|<kilometres/kilometers>) is it {route}|{tell} the distance {route}|"
    "how far is the airport (in {town}|) from the {middle}|"
    "what is the distance from {town} airport to the {middle} in <kilometres/miles>|"
    "is {town} (nearer|closer|further) than {town} from {town}",
    "city": "(which|what) (cities|towns) does {carrier} (serve|fly to)|where does {carrier} fly {when}|"
    "which (cities|towns) in {country} can i fly to from {town}|{tell} which city {number} stops in|"
    "{show} the cities with flights from {town} {when}|is {town} in {country} or in {country}|which city is {code} in",
}

LISTS = {name: tuple(words.split(", ")) for name, words in WORDS.items()}
REPEATABLE = {"digit", "few", "hour"}


def flights(n: int = 5000, seed: int = 0) -> list[Utterance]:
    """Utterances that travellers might say, with their intents and, as attribute, the speaker's dialect.

    More of them for the same seed begin with the same ones.

    >>> flights(3) == flights(500)[:3]
    True
    """
    if n < 0:
        raise InputError(f"the number of utterances must be 0 or more, got {n}")
    rng = random.Random(f"dpassay flights {seed}")  # of which only rng.random() is promised never to change
    return [_drawn(rng) for _ in range(n)]


def _drawn(rng: random.Random) -> Utterance:
    intent = _intent(rng.random() * sum(INTENTS.values()))
    dialect = DIALECTS[int(rng.random() * len(DIALECTS))]
    while True:
        words = _said(f"{{hello}} {{{intent}}} {{bye}}", rng, dialect, set()).split()
        if SHORTEST <= len(words) <= LONGEST:
            return Utterance(_with_articles(" ".join(words)), intent, dialect)


def _intent(point: float) -> str:
    """The intent at a point of the line on which they lie one behind the other.

    >>> _intent(23.9), _intent(24.0), _intent(99.9)
    ('flight', 'airfare', 'city')
    """
    for intent, share in INTENTS.items():
        if point < share:
            return intent
        point -= share
    raise AssertionError("the point lies past the last intent")


def _said(rule: str, rng: random.Random, dialect: str, used: set[str]) -> str:
    """Words for a rule.

    >>> _said("<an aeroplane/an airplane> to (rome|rome)", random.Random(1), "american", set())
    'an airplane to rome'
    """

    def choice(match: re.Match[str]) -> str:
        return _one_of(match[1].split("|"), rng)

    def in_dialect(match: re.Match[str]) -> str:
        own = (dialect == DIALECTS[0]) != (rng.random() < BORROWED)
        return match[1] if own else match[2]

    def filled(match: re.Match[str]) -> str:
        name = match[1]
        return _listed(name, rng, used) if name in LISTS else _said(f"({RULES[name]})", rng, dialect, used)

    found = 1
    while found:  # innermost brackets first
        rule, found = re.subn(r"\(([^()]*)\)", choice, rule)
    rule = re.sub(r"<([^/<>]*)/([^/<>]*)>", in_dialect, rule)
    return re.sub(r"\{(\w+)\}", filled, rule)


def _listed(name: str, rng: random.Random, used: set[str]) -> str:
    """An entry of a list that was not used before, so that nobody flies from Rome to Rome."""
    entry = _one_of([entry for entry in LISTS[name] if entry not in used], rng)
    if name not in REPEATABLE:
        used.add(entry)
    return entry


def _one_of(options: list[str], rng: random.Random) -> str:
    return options[int(rng.random() * len(options))]


def _with_articles(text: str) -> str:
    """Write `an` before a vowel.

    >>> _with_articles("a airbus or a one way ticket")
    'an airbus or a one way ticket'
    """
    return re.sub(r"\ba(?= [aeiou])(?! one\b)", "an", text)
