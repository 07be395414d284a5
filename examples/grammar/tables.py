"""The words of both languages, as tables.

A noun row is "english[/plural] = article German, plural"; '-' for the plural means a mass noun, '*' marks a weak
masculine (der Junge, den Jungen). A verb row is "base[/past[/participle]] | infinitive[, er-form], [ist ]participle |
objects": regular forms are derived; '+' in English marks a particle (picks him up), in German a separable prefix (ruft
ihn an). A fourth column names the case of the object where it is not the accusative (dat), or its preposition and case
(auf+acc).
"""

NOUNS = """
person
  man/men = der Mann, Männer              woman/women = die Frau, Frauen
  child/children = das Kind, Kinder       girl = das Mädchen, Mädchen
  boy = der Junge*, Jungen                teacher = die Lehrerin, Lehrerinnen
  doctor = die Ärztin, Ärztinnen          baker = der Bäcker, Bäcker
  student = der Student*, Studenten       neighbour = der Nachbar*, Nachbarn
  friend = der Freund, Freunde            brother = der Bruder, Brüder
  sister = die Schwester, Schwestern      mother = die Mutter, Mütter
  father = der Vater, Väter               daughter = die Tochter, Töchter
  son = der Sohn, Söhne                   aunt = die Tante, Tanten
  uncle = der Onkel, Onkel                grandmother = die Großmutter, Großmütter
  grandfather = der Großvater, Großväter  king = der König, Könige
  queen = die Königin, Königinnen         farmer = der Bauer*, Bauern
  cook = der Koch, Köche                  waiter = der Kellner, Kellner
  painter = die Malerin, Malerinnen       singer = die Sängerin, Sängerinnen
  lawyer = die Anwältin, Anwältinnen      policeman/policemen = der Polizist*, Polizisten
  engineer = der Ingenieur, Ingenieure    guest = der Gast, Gäste
  tourist = der Tourist*, Touristen       pilot = die Pilotin, Pilotinnen
  nurse = der Pfleger, Pfleger            journalist = die Journalistin, Journalistinnen
  musician = der Musiker, Musiker         boss = die Chefin, Chefinnen
  customer = der Kunde*, Kunden           colleague = der Kollege*, Kollegen
  gardener = die Gärtnerin, Gärtnerinnen  driver = der Fahrer, Fahrer
animal
  dog = der Hund, Hunde        cat = die Katze, Katzen      horse = das Pferd, Pferde
  bird = der Vogel, Vögel      bear = der Bär*, Bären       mouse/mice = die Maus, Mäuse
  cow = die Kuh, Kühe          duck = die Ente, Enten       lion = der Löwe*, Löwen
  monkey = der Affe*, Affen    pig = das Schwein, Schweine  goat = die Ziege, Ziegen
  fox = der Fuchs, Füchse      wolf/wolves = der Wolf, Wölfe
  elephant = der Elefant*, Elefanten                        rabbit = das Kaninchen, Kaninchen
reading
  book = das Buch, Bücher              letter = der Brief, Briefe         newspaper = die Zeitung, Zeitungen
  story = die Geschichte, Geschichten  poem = das Gedicht, Gedichte       novel = der Roman, Romane
  report = der Bericht, Berichte       postcard = die Postkarte, Postkarten
  sentence = der Satz, Sätze           magazine = die Zeitschrift, Zeitschriften
dish
  apple = der Apfel, Äpfel    cake = der Kuchen, Kuchen             egg = das Ei, Eier
  pear = die Birne, Birnen    potato/potatoes = die Kartoffel, Kartoffeln
  sausage = die Wurst, Würste tomato/tomatoes = die Tomate, Tomaten
  carrot = die Karotte, Karotten                                    banana = die Banane, Bananen
  onion = die Zwiebel, Zwiebeln                                     cherry = die Kirsche, Kirschen
  biscuit = der Keks, Kekse   pancake = der Pfannkuchen, Pfannkuchen
food
  bread = das Brot, -         cheese = der Käse, -         rice = der Reis, -       soup = die Suppe, -
  meat = das Fleisch, -       butter = die Butter, -       honey = der Honig, -     salad = der Salat, -
  ham = der Schinken, -       chocolate = die Schokolade, -
drink
  water = das Wasser, -       milk = die Milch, -          coffee = der Kaffee, -   tea = der Tee, -
  juice = der Saft, -         wine = der Wein, -           beer = das Bier, -
flat
  key = der Schlüssel, Schlüssel   picture = das Bild, Bilder          spoon = der Löffel, Löffel
  camera = die Kamera, Kameras     pencil = der Bleistift, Bleistifte  knife/knives = das Messer, Messer
  ring = der Ring, Ringe           flower = die Blume, Blumen          ticket = die Fahrkarte, Fahrkarten
  pillow = das Kissen, Kissen      map = die Landkarte, Landkarten     hammer = der Hammer, Hämmer
upright
  lamp = die Lampe, Lampen         cup = die Tasse, Tassen             glass = das Glas, Gläser
  bottle = die Flasche, Flaschen   suitcase = der Koffer, Koffer       box = die Kiste, Kisten
  basket = der Korb, Körbe         plate = der Teller, Teller          candle = die Kerze, Kerzen
thing
  bag = die Tasche, Taschen        umbrella = der Regenschirm, Regenschirme
  clock = die Uhr, Uhren           guitar = die Gitarre, Gitarren      ball = der Ball, Bälle
  computer = der Computer, Computer
  phone = das Telefon, Telefone    gift = das Geschenk, Geschenke      mirror = der Spiegel, Spiegel
clothes
  coat = der Mantel, Mäntel        shirt = das Hemd, Hemden            dress = das Kleid, Kleider
  hat = der Hut, Hüte              skirt = der Rock, Röcke             shoe = der Schuh, Schuhe
  jacket = die Jacke, Jacken       scarf/scarves = der Schal, Schals   sweater = der Pullover, Pullover
  cap = die Mütze, Mützen          suit = der Anzug, Anzüge            glove = der Handschuh, Handschuhe
vehicle
  car = das Auto, Autos            bicycle = das Fahrrad, Fahrräder    train = der Zug, Züge
  bus = der Bus, Busse             ship = das Schiff, Schiffe          boat = das Boot, Boote
  taxi = das Taxi, Taxis           tram = die Straßenbahn, Straßenbahnen
opening
  door = die Tür, Türen            window = das Fenster, Fenster       drawer = die Schublade, Schubladen
  gate = das Tor, Tore
furniture
  table = der Tisch, Tische        bed = das Bett, Betten              chair = der Stuhl, Stühle
  sofa = das Sofa, Sofas           bench = die Bank, Bänke             shelf/shelves = das Regal, Regale
  carpet = der Teppich, Teppiche   desk = der Schreibtisch, Schreibtische
  wardrobe = der Schrank, Schränke
place
  kitchen = die Küche, Küchen      garden = der Garten, Gärten         school = die Schule, Schulen
  city = die Stadt, Städte         village = das Dorf, Dörfer          forest = der Wald, Wälder
  park = der Park, Parks           office = das Büro, Büros            restaurant = das Restaurant, Restaurants
  hotel = das Hotel, Hotels        theatre = das Theater, Theater      hospital = das Krankenhaus, Krankenhäuser
  church = die Kirche, Kirchen     library = die Bibliothek, Bibliotheken
  museum = das Museum, Museen      bathroom = das Badezimmer, Badezimmer
  cinema = das Kino, Kinos         cellar = der Keller, Keller         bedroom = das Schlafzimmer, Schlafzimmer
  house = das Haus, Häuser         market = der Markt, Märkte          station = der Bahnhof, Bahnhöfe
  bridge = die Brücke, Brücken     beach = der Strand, Strände         airport = der Flughafen, Flughäfen
  island = die Insel, Inseln       lake = der See, Seen                river = der Fluss, Flüsse
"""

# Nouns of another domain, which take the place of the nouns of the same kinds.
DOMAINS = {"workshop": """
person
  electrician = der Elektriker, Elektriker      plumber = der Klempner, Klempner
  carpenter = der Tischler, Tischler            welder = die Schweißerin, Schweißerinnen
  locksmith = der Schlosser, Schlosser          apprentice = der Lehrling, Lehrlinge
  foreman/foremen = der Vorarbeiter, Vorarbeiter
  technician = die Technikerin, Technikerinnen  roofer = die Dachdeckerin, Dachdeckerinnen
  mechanic = der Mechaniker, Mechaniker         supplier = der Lieferant*, Lieferanten
  bricklayer = die Maurerin, Maurerinnen        inspector = der Prüfer, Prüfer
reading
  manual = das Handbuch, Handbücher             invoice = die Rechnung, Rechnungen
  blueprint = der Bauplan, Baupläne             contract = der Vertrag, Verträge
  checklist = die Prüfliste, Prüflisten         warning = die Warnung, Warnungen
flat
  wrench = der Schraubenschlüssel, Schraubenschlüssel
  screwdriver = der Schraubenzieher, Schraubenzieher
  nail = der Nagel, Nägel                       file = die Feile, Feilen
  chisel = der Meißel, Meißel                   hinge = das Scharnier, Scharniere
  ruler = das Lineal, Lineale                   cable = das Kabel, Kabel
  gasket = die Dichtung, Dichtungen             bolt = der Bolzen, Bolzen
upright
  ladder = die Leiter, Leitern                  bucket = der Eimer, Eimer
  pump = die Pumpe, Pumpen                      barrel = das Fass, Fässer
  drill = die Bohrmaschine, Bohrmaschinen       compressor = der Kompressor, Kompressoren
thing
  battery = die Batterie, Batterien             engine = der Motor, Motoren
  gear = das Zahnrad, Zahnräder                 fuse = die Sicherung, Sicherungen
  switch = der Schalter, Schalter               valve = das Ventil, Ventile
  sensor = der Sensor, Sensoren
clothes
  helmet = der Helm, Helme                      apron = die Schürze, Schürzen
  boot = der Stiefel, Stiefel                   mask = die Maske, Masken
vehicle
  truck = der Lastwagen, Lastwagen              crane = der Kran, Kräne
  forklift = der Gabelstapler, Gabelstapler     trailer = der Anhänger, Anhänger
  excavator = der Bagger, Bagger                tractor = der Traktor, Traktoren
furniture
  workbench = die Werkbank, Werkbänke           rack = das Gestell, Gestelle
  conveyor = das Förderband, Förderbänder       pallet = die Palette, Paletten
place
  factory = die Fabrik, Fabriken                warehouse = die Lagerhalle, Lagerhallen
  workshop = die Werkstatt, Werkstätten         yard = der Hof, Höfe
  garage = die Garage, Garagen                  smithy = die Schmiede, Schmieden
"""}

# Prepositions of places: English, German for a location, German for a direction. The default is "in" for all three.
PLACE_PREPOSITIONS = {
    "house": ("in", "in", "zu"), "market": ("at", "auf", "auf"), "station": ("at", "an", "zu"),
    "bridge": ("on", "auf", "zu"), "beach": ("at", "an", "an"), "airport": ("at", "an", "zu"),
    "island": ("on", "auf", "auf"), "lake": ("at", "an", "an"), "river": ("at", "an", "zu"),
}
AROUND = (("on", "auf"), ("under", "unter"), ("behind", "hinter"), ("in front of", "vor"), ("next to", "neben"))
TOWNS = (("Berlin", "Berlin"), ("Hamburg", "Hamburg"), ("Munich", "München"), ("Vienna", "Wien"), ("Cologne", "Köln"),
         ("London", "London"), ("Paris", "Paris"), ("Rome", "Rom"), ("Zurich", "Zürich"), ("Prague", "Prag"),
         ("Italy", "Italien"), ("France", "Frankreich"), ("Spain", "Spanien"), ("Poland", "Polen"))

# english[/comparative] | German, comparative[, stem before an ending] | kinds of noun; "object" is any kind of thing
ADJECTIVES = """
old/older | alt, älter | person animal object place reading
young/younger | jung, jünger | person animal
tall/taller | groß, größer | person
big/bigger | groß, größer | animal object place
small/smaller | klein, kleiner | person animal object place
happy/happier | glücklich, glücklicher | person
sad/sadder | traurig, trauriger | person
tired | müde, müder, müd | person animal
friendly/friendlier | freundlich, freundlicher | person
clever/cleverer | klug, klüger | person animal
strong/stronger | stark, stärker | person animal
sick | krank, kränker | person animal
rich/richer | reich, reicher | person
poor/poorer | arm, ärmer | person
lazy/lazier | faul, fauler | person animal
famous | berühmt, berühmter | person reading
hungry/hungrier | hungrig, hungriger | person animal
brave/braver | mutig, mutiger | person
patient | geduldig, geduldiger | person
polite/politer | höflich, höflicher | person
nervous | nervös, nervöser | person
wild/wilder | wild, wilder | animal
dangerous | gefährlich, gefährlicher | animal
fast/faster | schnell, schneller | animal vehicle
new/newer | neu, neuer | object place reading
heavy/heavier | schwer, schwerer | thing upright furniture
expensive | teuer, teurer, teur | object dish food
cheap/cheaper | billig, billiger | object dish food
beautiful | schön, schöner | object place
ugly/uglier | hässlich, hässlicher | object place
red | rot, röter | clothes vehicle upright opening
blue | blau, blauer | clothes vehicle upright opening
green | grün, grüner | clothes vehicle upright opening
black | schwarz, schwärzer | clothes vehicle animal
white | weiß, weißer | clothes vehicle animal opening
yellow | gelb, gelber | clothes upright thing
broken | kaputt, kaputter | vehicle thing upright opening furniture
dirty/dirtier | schmutzig, schmutziger | object place
clean/cleaner | sauber, sauberer | object place
modern | modern, moderner | place furniture vehicle
quiet/quieter | ruhig, ruhiger | place
dark/darker | dunkel, dunkler, dunkl | place
interesting | interessant, interessanter | reading place
boring | langweilig, langweiliger | reading place
long/longer | lang, länger | reading
short/shorter | kurz, kürzer | reading
difficult | schwierig, schwieriger | reading
funny/funnier | lustig, lustiger | reading person
fresh/fresher | frisch, frischer | dish food
sweet/sweeter | süß, süßer | dish drink
warm/warmer | warm, wärmer | clothes drink food
cold/colder | kalt, kälter | drink place food
hot/hotter | heiß, heißer | drink
good/better | gut, besser | reading food dish drink
"""
OBJECT_KINDS = ("thing", "flat", "upright", "clothes", "vehicle", "opening", "furniture")
# Adjectives whose comparative is rare or odd: colours, absolutes.
NOT_COMPARED = {"red", "blue", "green", "black", "white", "yellow", "broken", "sick"}

TRANSITIVE = """
read/read | lesen, liest, gelesen | reading
write/wrote/written | schreiben, geschrieben | letter novel poem report sentence story postcard
translate | übersetzen, übersetzt | reading
understand/understood | verstehen, verstanden | reading
eat/ate/eaten | essen, isst, gegessen | dish food
cook | kochen, gekocht | soup rice meat potato egg sausage carrot
bake | backen, gebacken | bread cake biscuit pancake
try | probieren, probiert | dish food drink
order | bestellen, bestellt | dish food drink taxi
drink/drank/drunk | trinken, getrunken | drink
buy/bought | kaufen, gekauft | thing flat upright clothes dish food drink reading furniture car bicycle
sell/sold | verkaufen, verkauft | thing upright clothes dish food furniture car bicycle boat horse
see/saw/seen | sehen, sieht, gesehen | person animal thing vehicle
look for | suchen, gesucht | person animal thing flat clothes
find/found | finden, gefunden | thing flat clothes reading animal
need | brauchen, gebraucht | thing flat upright clothes furniture vehicle
have/had | haben, gehabt | animal thing flat upright clothes car bicycle boat
love | lieben, geliebt | person animal story poem city village garden
know/knew/known | kennen, gekannt | person story poem novel restaurant hotel city
visit | besuchen, besucht | person museum city village island
invite | ein+laden, lädt, eingeladen | person
call | an+rufen, angerufen | person
pick +up | ab+holen, abgeholt | person
meet/met | treffen, trifft, getroffen | person
greet | grüßen, gegrüßt | person
wear/wore/worn | tragen, trägt, getragen | clothes ring
put/put +on | an+ziehen, angezogen | clothes
take/took/taken +off | aus+ziehen, ausgezogen | clothes
open | öffnen, geöffnet | opening suitcase box bottle letter
close | zu+machen, zugemacht | opening suitcase box bottle book
repair | reparieren, repariert | vehicle clock computer lamp phone door camera
paint | malen, gemalt | person animal flower house bridge
photograph | fotografieren, fotografiert | person animal place
draw/drew/drawn | zeichnen, gezeichnet | animal house flower map
feed/fed | füttern, gefüttert | animal
wash | waschen, wäscht, gewaschen | clothes car
carry | tragen, trägt, getragen | suitcase box basket bag lamp
lose/lost | verlieren, verloren | flat bag umbrella glove scarf hat
forget/forgot/forgotten | vergessen, vergisst, vergessen | flat bag umbrella phone hat
steal/stole/stolen | stehlen, stiehlt, gestohlen | ring camera car bicycle bag horse
hide/hid/hidden | verstecken, versteckt | flat gift letter box
bring/brought +along | mit+bringen, mitgebracht | dish cheese wine guitar ball flower gift
throw/threw/thrown +away | weg+werfen, wirft, weggeworfen | reading clothes umbrella ticket
hear/heard | hören, gehört | animal person train
clean | putzen, geputzt | window shoe kitchen bathroom mirror
help | helfen, hilft, geholfen | person | dat
thank | danken, gedankt | person | dat
answer | antworten, geantwortet | person | dat
congratulate | gratulieren, gratuliert | person | dat
follow | folgen, ist gefolgt | person animal | dat
listen to | zu+hören, zugehört | person | dat
wait for | warten, gewartet | person bus train tram taxi letter | auf+acc
think/thought of | denken, gedacht | person animal | an+acc
talk about | sprechen, spricht, gesprochen | person reading | über+acc
laugh at | lachen, gelacht | person story hat | über+acc
dream of | träumen, geträumt | person animal house car island | von+dat
ask for | bitten, gebeten | ticket glass cup gift key | um+acc
look after | auf+passen, aufgepasst | person animal suitcase | auf+acc
remember | sich erinnern, erinnert | person story poem house | an+acc
look forward to | sich freuen, gefreut | gift letter cake | auf+acc
complain about | sich beschweren, beschwert | person hotel restaurant soup | über+acc
fear | sich fürchten, gefürchtet | animal boss | vor+dat
"""

GIVING = """
give/gave/given | geben, gibt, gegeben | thing flat upright dish reading
show | zeigen, gezeigt | thing flat reading house garden clothes
send/sent | schicken, geschickt | letter postcard book gift picture flower
bring/brought | bringen, gebracht | dish drink upright food newspaper
lend/lent | leihen, geliehen | book car bicycle umbrella camera coat
offer | an+bieten, angeboten | drink dish food chair
tell/told | erzählen, erzählt | story
read/read | vor+lesen, liest, vorgelesen | story letter poem report
promise | versprechen, verspricht, versprochen | gift bicycle horse cake
"""

INTRANSITIVE = """
sleep/slept | schlafen, schläft, geschlafen |
work | arbeiten, gearbeitet |
laugh | lachen, gelacht |
dance | tanzen, getanzt |
sing/sang/sung | singen, gesungen |
play | spielen, gespielt |
wait | warten, gewartet |
cry | weinen, geweint |
smile | lächeln, gelächelt |
swim/swam/swum | schwimmen, ist geschwommen |
get/got up | auf+stehen, ist aufgestanden |
wake/woke/woken up | auf+wachen, ist aufgewacht |
fall/fell/fallen asleep | ein+schlafen, schläft, ist eingeschlafen |
arrive | an+kommen, ist angekommen |
come/came/come back | zurück+kommen, ist zurückgekommen |
stay | bleiben, ist geblieben |
sit/sat down | sich setzen, gesetzt |
rest | sich aus+ruhen, ausgeruht |
hurry | sich beeilen, beeilt |
"""

MOTION = """
go/went/gone | gehen, ist gegangen |
come/came/come | kommen, ist gekommen |
run/ran/run | laufen, läuft, ist gelaufen |
return | zurück+kehren, ist zurückgekehrt |
"""

TRAVEL = """
travel/travelled | reisen, ist gereist |
fly/flew/flown | fliegen, ist geflogen |
drive/drove/driven | fahren, fährt, ist gefahren |
"""

LIVE = """
live | wohnen, gewohnt |
work | arbeiten, gearbeitet |
stay | bleiben, ist geblieben |
"""

POSITION = """
lie/lay/lain | liegen, gelegen | flat reading clothes
stand/stood | stehen, gestanden | upright
"""

SITTING = """
sit/sat | sitzen, gesessen |
sleep/slept | schlafen, schläft, geschlafen |
stand/stood | stehen, gestanden |
"""

# English has one verb, put; German distinguishes legen (lying things) and stellen (standing things).
PUTTING = """
put/put | legen, gelegt | flat reading clothes
put/put | stellen, gestellt | upright
"""

SAYING = """
believe | glauben, geglaubt |
say/said | sagen, gesagt |
hope | hoffen, gehofft |
know/knew/known | wissen, gewusst |
hear/heard | hören, gehört |
"""

PLANNING = """
try | versuchen, versucht |
promise | versprechen, verspricht, versprochen |
forget/forgot/forgotten | vergessen, vergisst, vergessen |
begin/began/begun | an+fangen, fängt, angefangen |
decide | beschließen, beschlossen |
plan/planned | planen, geplant |
"""

# Verbs of animals; of states (no progressive, no modal); of activities that people like ("gern"); with a passive.
OF_ANIMALS = set("eat drink see hear follow sleep swim run wait play wake stay".split())
STATES = set("need have love know understand hear see believe hope fear remember".split())
LIKED = set("read write translate eat cook bake drink visit wear paint photograph draw "
            "feed help sleep work dance sing play swim travel fly drive".split())
WITH_PASSIVE = set("read write translate cook bake order buy sell find invite greet "
                   "open repair paint photograph draw feed wash steal hide visit eat".split())

NAMES = {"he": "Peter Paul Martin David Jan".split(), "she": "Anna Maria Lena Emma Sophie Julia Clara".split()}

NUMBERS = (("two", "zwei"), ("three", "drei"), ("four", "vier"), ("five", "fünf"), ("six", "sechs"),
           ("seven", "sieben"), ("eight", "acht"), ("nine", "neun"), ("ten", "zehn"), ("eleven", "elf"),
           ("twelve", "zwölf"))

DAYS = (("Monday", "Montag"), ("Tuesday", "Dienstag"), ("Wednesday", "Mittwoch"), ("Thursday", "Donnerstag"),
        ("Friday", "Freitag"), ("Saturday", "Samstag"), ("Sunday", "Sonntag"))
NOW = (("now", "jetzt"), ("at the moment", "im Moment"))
TIMES = {
    "present": NOW + (("today", "heute"), ("every day", "jeden Tag"), ("every week", "jede Woche"),
                      ("every year", "jedes Jahr"),
                      ("in the morning", "am Morgen"), ("in the afternoon", "am Nachmittag"),
                      ("in the evening", "am Abend"), ("at night", "in der Nacht"), ("in summer", "im Sommer"),
                      ("in winter", "im Winter")),
    "past": (("yesterday", "gestern"), ("last week", "letzte Woche"), ("last year", "letztes Jahr"),
             ("last month", "letzten Monat"), ("this morning", "heute Morgen")),
    "future": (("tomorrow", "morgen"), ("next week", "nächste Woche"), ("next year", "nächstes Jahr"),
               ("next month", "nächsten Monat"), ("tonight", "heute Abend"), ("soon", "bald")),
}
SPANS = (("days", "Tagen"), ("weeks", "Wochen"), ("months", "Monaten"), ("years", "Jahren"))
OFTEN = (("always", "immer"), ("often", "oft"), ("never", "nie"), ("sometimes", "manchmal"), ("rarely", "selten"),
         ("usually", "normalerweise"))
MANNERS = (("quickly", "schnell"), ("slowly", "langsam"), ("quietly", "leise"), ("loudly", "laut"), ("alone", "allein"))
COMMENTS = (("perhaps", "vielleicht"), ("unfortunately", "leider"), ("fortunately", "zum Glück"),
            ("of course", "natürlich"))
DEGREES = (("very", "sehr"), ("too", "zu"), ("quite", "ziemlich"))
# conjunction in English and German, and the tenses of (main, subordinate) clauses that it joins
CONJUNCTIONS = (
    ("because", "weil", (("present", "present"), ("past", "past"), ("future", "present"))),
    ("although", "obwohl", (("present", "present"), ("past", "past"), ("future", "present"))),
    ("if", "wenn", (("present", "present"), ("future", "present"))),
    ("when", "als", (("past", "past"),)),
    ("before", "bevor", (("past", "past"), ("present", "present"))),
    ("while", "während", (("past", "past"), ("present", "present"))),
)
