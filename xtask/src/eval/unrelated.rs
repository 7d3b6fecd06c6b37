//! Sentences that are unrelated to any catalog of skills, built from templates.

/// Templates with one gap, and its fillings.
const KINDS: &[(&str, &[&str])] = &[
    ("what's for {}?", &["lunch", "dinner", "breakfast tomorrow", "dessert"]),
    ("good morning, how are you {}?", &["today", "this fine day", "my friend", "after the party"]),
    ("I feel {} today", &["sad", "tired", "wonderful", "a bit lonely", "nervous"]),
    ("tell me a joke about {}", &["penguins", "grandmothers", "cheese", "dentists"]),
    ("what is {}?", &["17 times 23", "the square root of 144", "5 plus 8", "12 percent of 250"]),
    ("how much is {} divided by 7?", &["91", "1001", "343", "77"]),
    ("how long do I boil {}?", &["an egg", "potatoes", "spaghetti", "a lobster"]),
    ("give me a recipe for {}", &["banana bread", "lentil soup", "carrot cake", "pickled herring"]),
    ("can I freeze {}?", &["cooked rice", "whipped cream", "mushrooms", "goat cheese"]),
    ("will it rain in {} tomorrow?", &["Lisbon", "Oslo", "Osaka", "Nairobi"]),
    ("how cold is it in {} in January?", &["Helsinki", "Montreal", "Seoul", "Ankara"]),
    ("who won the {} last night?", &["football match", "tennis final", "ice hockey game", "derby"]),
    ("how many goals did {} score?", &["Messi", "Pelé", "Haaland", "Marta"]),
    ("what is the capital of {}?", &["Mongolia", "Peru", "Ghana", "Bhutan"]),
    ("how tall is {}?", &["Mount Fuji", "the Eiffel Tower", "a giraffe", "Big Ben"]),
    ("who was the first king of {}?", &["Norway", "Portugal", "Thailand", "Bavaria"]),
    ("when did {} die?", &["Cleopatra", "Mozart", "Napoleon", "Frida Kahlo"]),
    ("my {} hurts when I walk", &["knee", "left foot", "hip", "lower back"]),
    ("what helps against {}?", &["hiccups", "a sunburn", "hay fever", "snoring"]),
    ("how many calories are in {}?", &["an avocado", "two pancakes", "a glass of wine", "sushi"]),
    ("how do I get {} stains out of wool?", &["red wine", "coffee", "grass", "beetroot"]),
    ("my {} is leaking water again", &["dishwasher", "bathtub", "radiator", "kitchen tap"]),
    ("how often should I water {}?", &["an orchid", "tomatoes", "a cactus", "basil"]),
    ("which wine goes with {}?", &["roast duck", "oysters", "blue cheese", "asparagus"]),
    ("what should I see in {} in two days?", &["Prague", "Kyoto", "Lima", "Marrakesh"]),
    ("do I need a visa for {}?", &["Vietnam", "Brazil", "Egypt", "Georgia"]),
    ("is the beach in {} nice in spring?", &["Nice", "Goa", "Cadiz", "Split"]),
    ("recommend a {} film for tonight", &["scary", "romantic", "funny", "very old"]),
    ("who plays the villain in {}?", &["Titanic", "The Matrix", "Jaws", "Casablanca"]),
    ("how does {} end?", &["Hamlet", "Moby Dick", "Anna Karenina", "Macbeth"]),
    ("how do you say {} in Italian?", &["good night", "thank you", "my shoe is wet", "cheers"]),
    ("what rhymes with {}?", &["orange", "moon", "silver", "purple"]),
    ("should I marry {}?", &["my boyfriend", "for money", "in June", "an astronaut"]),
    ("my {} won't talk to me", &["sister", "neighbour", "best friend", "uncle"]),
    ("what should I give my {} for her birthday?", &["mother", "niece", "aunt", "wife"]),
    ("how old do {} get?", &["parrots", "elephants", "goldfish", "tortoises"]),
    ("do {} dream?", &["dogs", "spiders", "whales", "babies"]),
    ("why do {} purr?", &["cats", "lions", "hamsters", "guinea pigs"]),
    ("is {} a fruit or a vegetable?", &["a tomato", "rhubarb", "a cucumber", "an aubergine"]),
    ("how far away is {}?", &["the moon", "Jupiter", "the nearest star", "Andromeda"]),
    ("how do I tie {}?", &["a bow tie", "my shoelaces", "a reef knot", "a turban"]),
    ("which size of {} do I need?", &["bicycle", "ring", "winter coat", "ski boots"]),
    ("what does it mean to dream of {}?", &["falling", "snakes", "flying", "lost teeth"]),
    (
        "is it bad luck to {}?",
        &["break a mirror", "walk under a ladder", "spill salt", "whistle at sea"],
    ),
    ("sing me a song about {}", &["the sea", "my goldfish", "autumn leaves", "trains"]),
    ("I am so {} of this weather", &["tired", "sick", "fond", "afraid"]),
    ("thank you, that was {}", &["lovely", "great", "very kind", "all for now"]),
    ("please {} for a moment", &["wait", "be quiet", "sit down", "hold my hand"]),
    ("where did I leave my {}?", &["glasses", "umbrella", "wedding ring", "left glove"]),
    (
        "how do I stop {}?",
        &["biting my nails", "the baby from crying", "blushing", "eating chocolate"],
    ),
    ("what time does the {} open?", &["swimming pool", "bakery", "museum on Sundays", "zoo"]),
    ("who invented {}?", &["the umbrella", "chewing gum", "the bicycle", "popcorn"]),
    ("which planet has {}?", &["the most moons", "rings", "the longest day", "diamond rain"]),
    ("can you {} a horse on a Sunday?", &["ride", "buy", "wash", "borrow"]),
    ("how many people live in {}?", &["Iceland", "Tokyo", "Patagonia", "Malta"]),
];

/// All templates with all fillings.
pub(super) fn list_sentences() -> Vec<String> {
    KINDS.iter().flat_map(|(template, words)| fill_template(template, words)).collect()
}

fn fill_template(template: &str, words: &[&str]) -> Vec<String> {
    words.iter().map(|word| template.replace("{}", word)).collect()
}
