#include "text/sentence_words.h"

#include <array>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/sentence_characters.h"
#include "text/unicode.h"

namespace qkv::sentence {
namespace {

using Words = std::unordered_set<std::string_view>;

// The lists have a line or more for each language, and serve all languages. Words without a vowel ("hrsg"), letters
// with full stops between them ("z.B") and single letters need no entry: rules find them.
constexpr std::string_view kBeforeName = R"(
  MR DR PS NB p.s TP GS PGS ThS Mr Mrs Ms Messrs Dr Drs Prof Profs Rev Revd Fr Hon Gen Col Lt Capt Cmdr Adm Maj Brig Sgt Cpl Pvt Gov Sen Rep Reps Sens
  Pres Supt Insp Det Ste Msgr Asst Assoc vs viz eg ie approx resp e.c i.e cf
  Hr Hrn Frl Dipl Ing Doz nat bzw bsp vgl sog bzgl ggf evtl insb einschl geb gest hrsg verf zzgl inkl exkl ca gegr
  übers d.h z.b z.bsp i.d.r
  av mm Mme Mmes Mlle Mlles Mgr Vve p.ex
  Sra Sres Srta Srtas Gral Cía Cnel Lda Ldo Excmo Excma Exa Dña Dto Dtor Lic Arq Exmo Exma Ilmo Ilma Dra Profa profª pág págs núm Avda Fco Vda
  Sig Sigg Sig.ra Sig.na Dott Dott.ssa Prof.ssa Avv Geom Egr Gent Spett
  mevr Dhr Mevr Mej bijv evt zgn
  tzn np ul gen woj pow inż św tzw tj
  tzv např mudr judr phdr rndr mvdr paeddr tř
  dvs eks f.eks esim
  г-н г-жа ул пр-т пл проф акад доц канд инж ред рис табл илл см напр т.е т.к т.н полк пос обл просп наб бул вул ім тзв д-р
  κος δρ αγ π.χ βλ δηλ
  doç yrd bkz örn mah cad sok
  özv ifj
  डॉ डा प्रो कु पं स्व ए बी सी डी ई एफ जी एच आई जे के एल एम एन ओ पी क्यू आर एस टी यू वी डब्ल्यू एक्स वाई ज़ेड जेड
  ডা ডঃ মো মোঃ
)";

constexpr std::string_view kBeforeNumber = R"(
  No Nos no nos nr nrs num n° nº p pp pg pgs art arts Abs Ziff Abb tab fig figs Figg apt sec secs sect ext ch chap chaps kap cap
  vol vols bd bde ed eds godz lfd Rn Anm eq eqs ref refs ver par para pars lib tel
  Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec Mär Mrz Okt Dez janv févr avr juil août déc ene abr
  Mon Tue Tues Wed Thu Thur Thurs Fri Sat Sun
  čís str янв февр апр авг сент окт нояб дек стр гл пп ст чл разд вып σελ αρ άρθ rys hst
)";

constexpr std::string_view kAnywhere = R"(
  St Mt Ft al Inc inc Corp corp Ltd ltd Co co LLC Cos Bros Jr jr Sr sr Esq Dept dept Univ univ Assn Ave Blvd Hwy Bldg Mfg Intl Natl
  Dist Ariz Calif Colo Conn Fla Ill Ind Kan Mass Mich Minn Miss Mont Neb Nev Okla Ore Penn Tenn Tex Wash Wis Wyo
  mio mrd tsd mill millj mil mln tys tis тыс млн млрд
  gmbh allg amtl dt ehem eigtl engl franz jh jhd jhdt tägl
  cie éd édit apr
  spol изд перераб vof prof ing dott doc hab im им nám EE UU FF AA CC OO RR HH Ud Uds Vd Vds
)";

constexpr std::string_view kAfterNumber = R"(
  min mins hr hrs wk wks yr yrs mi oz lb lbs gal std sek stk hod
  гг вв руб коп чел экз мин сек
)";

// Words without a vowel that are no abbreviations, and abbreviations that mostly end a sentence.
constexpr std::string_view kOrdinary = R"(
  lkw pkw kfz др stb dll dsb dst vb mfl tv cd dvd pdf html php thx pls btw hmm shh psst grr pfft nth
)";

constexpr std::string_view kStarters = R"(
  the a this that these those it he she we they you i there here but and or so if in on at as for from to by with after
  before when while where what who why how although though because since however moreover furthermore meanwhile then now
  also his her its their our my your all some many most several both each every no not nor only even yet still once
  four five six seven eight nine ten according despite during until unless under over between among within without one two three another other such
  is are was were do does did can could would should has have had let please thanks

  der die das ein eine einer eines einem einen er sie es wir ihr ich man dies diese dieser dieses diesem diesen aber und
  oder denn doch wenn als ob weil da dass im am auf an aus bei mit nach vor für durch über unter zwischen seit bis während
  wegen trotz ohne gegen auch dann nun noch nur sein seine seiner ihre ihrer unser kein keine nicht wer wie wo warum zum
  zur beim vom zwei drei vier fünf sechs sieben acht neun zehn einige viele alle hier dort danach dabei dazu damit außerdem jedoch allerdings sowohl nachdem

  deux trois quatre cinq le la les un une des il elle ils elles nous vous je ce cet cette ces cela ça mais et ou où donc car si quand lorsque
  comme parce puisque dans en au aux avec pour par sur sous sans après avant depuis pendant selon son sa ses leur leurs
  notre votre qui que quoi dont même tous toutes tout aussi ainsi puis cependant pourtant c'est chez entre vers

  dos tres cuatro cinco el las los unos unas él ella ellos ellas esta este estos estas ese esa esto eso pero y o ni cuando porque aunque desde
  hasta hacia según sin sobre tras durante con su sus también además lo al del hay fue ha han muy ya así entonces donde
  después antes mientras es son

  due tre quattro cinque gli uno egli lui lei noi loro questo questa questi queste quello quella ma e se perché nel nella nei nelle negli alla ai
  alle dal dalla per tra fra senza dopo prima secondo anche inoltre non che chi suo sua suoi sono della dei delle degli

  os as um uma ele ela eles elas você isso isto esse essa mas quando embora até na nas ao à aos às pelo pela com sem antes
  segundo não seu sua foi em do da dos

  het een hij zij ze wij dit deze dat en of want toen omdat hoewel sinds tot tijdens voor op bij met door over onder tussen
  zonder volgens ook niet er hun zijn haar wat waar waarom hoe

  ett det han hon vi jag detta denna dessa men och eller om när som eftersom efter före på av från till med utan enligt
  också inte et jeg hun dette disse eller hvis når fordi etter siden uten ifølge ikke hans deres hvad hva hvor var har

  w z na od po przed pod nad przez dla bez ten ta te tego tej ona ono oni ale lub oraz jeśli gdy kiedy jak ponieważ
  chociaż według także również nie jest są był była było jego jej ich co kto gdzie

  v ve ze před přes pro ty a nebo jestli když kdy protože ačkoli podle také tak není je jsou byl byla bylo jeho její
  jejich kdo kde při však

  два три четыре пять в на с из от до по за под над через для без это этот эта эти тот он она оно они мы я ты вы но и или если когда как
  потому хотя согласно также не что кто где его её их у к о об при после перед во со так однако а все всё там здесь

  ο η το οι τα ένας μια αυτό αυτός αυτή αλλά και ή αν όταν όπως επειδή με σε από για χωρίς μετά πριν στο στη στην στον

  bu şu o bir ama fakat ancak eğer çünkü için ile sonra önce ne kim nerede
  din de pe pentru fără după înainte acest această ea ei și sau dacă când cum deoarece
  az egy ez ők vagy ha amikor mint mert után előtt nem hogy
  ja mutta tai jos kun koska hän he minä sinä se tämä nämä ei myös
)";

constexpr std::string_view kParticles = R"(
  a al da das de degli del della den der des di do dos du e el i la las le les los o ten van von y zu zum zur
)";

constexpr std::string_view kPronouns = R"(
  i i'm i'll i've i'd you he she it we they it's we're you're they're there please thanks ich wir je j'ai nous vous ils elles
  yo ellos eu я мы вы они он она
)";

constexpr std::string_view kArticles = "der die das dem den des";

constexpr std::string_view kGerman = R"(
  das und im vom zum zur beim eine einen einer eines einem ist sind wird wurde wurden sich nicht auf mit ihre seine seiner
  ihrer ich wir auch bei nach für über
)";

constexpr std::string_view kDates = R"(
  januar jänner februar märz april mai juni juli august september oktober november dezember
  jan feb mär apr jun jul aug sep sept okt nov dez jahrhundert jahrhunderts jh jhd jhdt
  ledna února března dubna května června července srpna září října listopadu prosince
  stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia
  januára februára apríla mája júna júla augusta septembra októbra novembra decembra
  január február március április május június július augusztus szeptember október december
  januar februar mars maj marts desember
  ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık
)";

Words words_of(std::string_view list) {
  const std::vector<std::string_view> words = split_words(list);
  return {words.begin(), words.end()};
}

using Kinds = std::unordered_map<std::string_view, Abbreviation>;

Kinds all_kinds() {
  Kinds kinds;
  for (const auto& [list, kind] : {std::pair(kOrdinary, Abbreviation::none),
                                   {kBeforeName, Abbreviation::before_name},
                                   {kBeforeNumber, Abbreviation::before_number},
                                   {kAnywhere, Abbreviation::anywhere},
                                   {kAfterNumber, Abbreviation::after_number}})
    for (const std::string_view word : split_words(list)) kinds.emplace(word, kind);
  return kinds;
}

// Letters with full stops between them: "U.S", "z.B".
bool has_inner_stops(std::string_view word) {
  size_t letters = 0, stops = 0;  // letters since the last stop
  for (Character c = character_at(word, 0); c.begin < word.size(); c = character_at(word, c.end)) {
    if (c.code == '.') {
      if (letters == 0) return false;
      letters = 0;
      stops++;
    } else if (!is_letter(c.code) || (!is_combining(c.code) && ++letters > 2)) {
      return false;
    }
  }
  return stops > 0 && letters > 0;
}

// Whether a word in lower case has two to five letters and no vowel, like the abbreviations "bzw" and "гр". Between
// consonants an r or an l is a vowel, as in Czech, and so is a y.
bool lacks_vowel(std::string_view word) {
  constexpr std::u32string_view kVowels = U"aeiouyæøœıаеёиоуыэюяіїєαεηιουω";
  const std::string letters = strip_accents(word);
  size_t count = 0;
  for (Character c = character_at(letters, 0); c.begin < letters.size(); c = character_at(letters, c.end)) {
    const bool is_syllabic = (c.code == 'r' || c.code == 'l') && count > 0 && c.end < letters.size();
    constexpr int32_t kEndOfCyrillic = 0x530;
    if (!is_lower(c.code) || c.code >= kEndOfCyrillic || is_syllabic ||
        kVowels.find(static_cast<char32_t>(c.code)) != kVowels.npos)
      return false;
    count++;
  }
  return count >= 2 && count <= 5;
}

// Returns the kind that a list has for a word; one in capitals, such as "PROF", is also found as "Prof" and "prof".
std::optional<Abbreviation> listed_kind(const std::string& word, const std::string& lower) {
  static const Kinds kinds = all_kinds();
  auto found = kinds.find(word);
  if (found == kinds.end()) found = kinds.find(lower);
  if (found == kinds.end() && lower.size() > 2 && lower.back() != word.back()) {
    const std::string title = word.substr(0, 1) + lower.substr(1);
    found = kinds.find(title);
  }
  return found == kinds.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

Abbreviation kind_of_abbreviation(std::string_view word, const std::unordered_set<std::string>& more) {
  const std::string lower = lowercase(word);
  if (more.contains(lower)) return Abbreviation::anywhere;
  if (const std::optional<Abbreviation> kind = listed_kind(std::string(word), lower)) return *kind;
  if (has_inner_stops(lower)) return Abbreviation::anywhere;
  if (lower.ends_with("str")) return Abbreviation::before_number;  // "Hauptstr. 5"
  const bool has_capitals = word.substr(character_at(word, 0).end) != lower.substr(character_at(lower, 0).end);
  if (!has_capitals && lacks_vowel(lower)) return Abbreviation::after_number;
  const size_t part = word.find_first_of("-'");  // of "Jan.-Feb." and "l'art."
  return part == word.npos ? Abbreviation::none : kind_of_abbreviation(word.substr(part + 1), more);
}

bool has_role(std::string_view word, WordRole role) {
  static const std::array<Words, 6> words = {words_of(kStarters), words_of(kParticles), words_of(kPronouns),
                                             words_of(kArticles), words_of(kGerman),    words_of(kDates)};
  return words[static_cast<size_t>(role)].contains(word);
}

}  // namespace qkv::sentence
