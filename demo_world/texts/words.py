"""The words that patterns draw from.

Nouns come in pairs (singular, plural) that start with a consonant sound, so that "a {thing}" is always right.
"""

from __future__ import annotations

NOUNS: dict[str, tuple[tuple[str, str], ...]] = {
    "thing": (
        ("book", "books"), ("pencil", "pencils"), ("marble", "marbles"), ("shell", "shells"),
        ("coin", "coins"), ("stamp", "stamps"), ("card", "cards"), ("lemon", "lemons"), ("button", "buttons"),
        ("cookie", "cookies"), ("plum", "plums"), ("pear", "pears"), ("tile", "tiles"), ("brick", "bricks"),
        ("candle", "candles"), ("balloon", "balloons"), ("bottle", "bottles"), ("muffin", "muffins"),
        ("sticker", "stickers"), ("bead", "beads"), ("nail", "nails"), ("screw", "screws"),
        ("battery", "batteries"), ("ribbon", "ribbons"), ("potato", "potatoes"), ("carrot", "carrots"),
        ("peach", "peaches"), ("melon", "melons"), ("nut", "nuts"), ("postcard", "postcards"),
        ("photo", "photos"), ("flower", "flowers"), ("seed", "seeds"), ("spoon", "spoons"), ("cup", "cups"),
        ("plate", "plates"), ("towel", "towels"), ("sock", "socks"), ("glove", "gloves"), ("toy", "toys"),
    ),
    "container": (
        ("box", "boxes"), ("crate", "crates"), ("basket", "baskets"), ("bag", "bags"), ("jar", "jars"),
        ("shelf", "shelves"), ("drawer", "drawers"), ("carton", "cartons"), ("tray", "trays"),
        ("bucket", "buckets"), ("sack", "sacks"), ("packet", "packets"), ("tin", "tins"), ("case", "cases"),
        ("barrel", "barrels"), ("cupboard", "cupboards"),
    ),
    "worker": (
        ("baker", "bakers"), ("painter", "painters"), ("farmer", "farmers"), ("driver", "drivers"),
        ("teacher", "teachers"), ("nurse", "nurses"), ("clerk", "clerks"), ("gardener", "gardeners"),
        ("tailor", "tailors"), ("builder", "builders"), ("porter", "porters"), ("librarian", "librarians"),
        ("potter", "potters"), ("carpenter", "carpenters"),
    ),
    "visitor": (
        ("guest", "guests"), ("pupil", "pupils"), ("child", "children"), ("passenger", "passengers"),
        ("tourist", "tourists"), ("student", "students"), ("member", "members"), ("player", "players"),
        ("reader", "readers"), ("singer", "singers"), ("hiker", "hikers"), ("runner", "runners"),
        ("voter", "voters"), ("client", "clients"), ("customer", "customers"),
    ),
    "vehicle": (
        ("bus", "buses"), ("train", "trains"), ("van", "vans"), ("ferry", "ferries"), ("truck", "trucks"),
        ("boat", "boats"), ("plane", "planes"), ("tram", "trams"), ("coach", "coaches"), ("lorry", "lorries"),
    ),
    "item": (
        ("ticket", "tickets"), ("lamp", "lamps"), ("chair", "chairs"), ("shirt", "shirts"),
        ("notebook", "notebooks"), ("kettle", "kettles"), ("blanket", "blankets"), ("bicycle", "bicycles"),
        ("camera", "cameras"), ("table", "tables"), ("hat", "hats"), ("scarf", "scarves"), ("clock", "clocks"),
        ("radio", "radios"), ("tent", "tents"), ("rope", "ropes"), ("vase", "vases"), ("mirror", "mirrors"),
        ("pillow", "pillows"), ("jacket", "jackets"),
    ),
    "animal": (
        ("cow", "cows"), ("sheep", "sheep"), ("hen", "hens"), ("goat", "goats"), ("duck", "ducks"),
        ("horse", "horses"), ("rabbit", "rabbits"), ("goose", "geese"), ("pig", "pigs"), ("bee", "bees"),
        ("pony", "ponies"), ("turkey", "turkeys"),
    ),
    "row": (
        ("row", "rows"), ("line", "lines"), ("column", "columns"), ("stack", "stacks"), ("pile", "piles"),
        ("bundle", "bundles"), ("group", "groups"), ("set", "sets"),
    ),
}  # fmt: skip

WORDS: dict[str, tuple[str, ...]] = {
    "person": (
        "Anna", "Boris", "Carla", "David", "Elena", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Karim",
        "Lucia", "Marta", "Nadia", "Oscar", "Paula", "Quentin", "Rosa", "Samir", "Tanja", "Ulrich", "Vera",
        "Walter", "Ximena", "Yusuf", "Zoe", "Amir", "Bella", "Chen", "Dora", "Emil", "Fiona", "Goran", "Hana",
        "Ivan", "Julia", "Kofi", "Leila", "Milan", "Nora",
    ),
    "place": (
        "the market", "the school", "the library", "the station", "the harbour", "the museum", "the factory",
        "the farm", "the theatre", "the hotel", "the warehouse", "the bakery", "the village", "the workshop",
        "the camp", "the office", "the garden", "the town hall", "the hospital", "the bookshop",
    ),
    "weekday": (
        "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday",
    ),
    "period": (
        "day", "week", "month", "year", "hour", "morning", "season", "evening",
    ),
    "colour": (
        "red", "blue", "green", "white", "black", "yellow", "brown", "grey", "purple", "silver",
    ),
    "reason": (
        "for the fair", "for the school", "for a friend", "before the storm", "at the weekend",
        "on the way home", "after lunch", "in the morning", "with some help", "for the wedding",
        "as a present", "without any hurry",
    ),
    "unit": (
        "metres", "litres", "kilograms", "kilometres", "grams", "hours", "minutes", "miles", "tonnes",
        "pounds",
    ),
    "weather": (
        "sunny", "rainy", "windy", "foggy", "cold", "warm", "cloudy", "quiet", "stormy", "mild",
    ),
}  # fmt: skip

CALCULATOR_PRELUDES: tuple[str, ...] = (
    "{Person3} is {d} years old.", "It was a {weather} {weekday}.", "There are {d} {workers} in {place3}.",
    "The road is {d} miles long.", "{Person3} came from {place3}.", "This happened in room {d}.",
    "The doors opened {d} minutes late.", "Here is a short problem.", "{Person3} told this story.",
    "The {colour3} sign says {d}.", "We waited for {d} minutes.", "Let us count.",
)  # fmt: skip

CALCULATOR_TAILS: tuple[str, ...] = (
    "That was enough for everyone.", "Nobody had expected so much.", "{Person3} wrote the number down.",
    "It was checked twice.", "The list was then complete.", "Everyone agreed.", "{Person3} nodded.",
    "After that, the day was over.", "It took a while to count.", "The rest can wait until {weekday}.",
    "{Person3} was pleased with it.", "That is what the report says.", "The figure was correct.",
    "Then it began to rain.", "Nothing else was needed.", "{Person3} had guessed it.",
    "The note was pinned to the door.",
)  # fmt: skip

CALENDAR_TAILS: tuple[str, ...] = (
    "The meeting starts at noon.", "The shop is open until six.", "It is a {weather} day.",
    "{Person3} will call back tomorrow.", "Please sign below.", "The letter was sent at once.",
    "There is still much to do.", "The report is due soon.", "Thank you for waiting.",
    "{Person3} wrote it on the board.", "The calendar on the wall agrees.", "The train leaves in an hour.",
    "Nothing is planned yet.", "Breakfast is ready.", "Let us begin.", "The weather is {weather}.",
)  # fmt: skip

FACT_TAILS: tuple[str, ...] = (
    "{Person3} looked it up.", "The atlas says the same.", "It was in the quiz.", "This is easy to check.",
    "{Person3} wrote it down.", "Many people do not know that.", "The teacher was satisfied.",
    "It is printed on the map.", "That is one fact worth knowing.", "{Person3} visited it once.",
    "The guide explained it well.", "The next page has a picture.", "The class took notes.",
)  # fmt: skip
