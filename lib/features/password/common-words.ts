/**
 * Words that occur often in passwords: words for passwords, pet names, first names, animals,
 * sports, teams, cars, films and the like, of several languages. Collected for this package.
 * Sorted, in lower case.
 */
export const COMMON_WORDS: string = `
abcdef abigail access account achilles admin administrator adriana airforce ajax alejandro alexander alexandra
alexandre allah alpha always alyssa amanda amber amelia amen america american amigo amigos amor amore amour
andrea andrew android angel angelic angels anthony antonio anything apollo apple apples april argentina army
arsenal asdfgh ashley askim asshole athena atlanta atlantis audi august austin australia autumn avatar avenger
avengers azerty babe baby babyboy babygirl backup bailey bambi banana barbara barbie barcelona barney baseball
basketball bastard batman bayern beach bear bears beatles beautiful believe benfica benjamin berlin besiktas
bestfriend beta beyonce bible bieber bienvenue biker birthday bitch black blessed blessing blink blossom blue
blueberry bmw bonjour boobs boston boxing brandon brasil brasileiro brazil brian britney brittany bronco broncos
brother brothers brown brownie bubbles buckeye buckeyes buddha budweiser bulls bullshit bunny burger business
buster butter buttercup butterfly california camaro camera camila camille canada candy captain carlos carolina
casino cat catherine cats celtic celtics champion change changeme chargers charles charlie charlotte cheese
cheetah chelsea chemistry cherry chevrolet chevy chicago chicagobulls chicken children china chivas chloe
chocolat chocolate christ christian christina christine christmas christopher church ciao cinnamon cisco claudia
cleopatra client cobra cocacola coco coconut coffee college commander company computer contrasena cookie cookies
cooper corazon corinthians corvette cougar counter courtney cowboy cowboys cricket crimson crimsontide crusader
crystal cupcake customer cute cutie cyber daddy daisy dakota dallas dance dancer dancing daniel daniela danielle
dark darkness darling database david davidson deadpool december default delta demo demon denver desktop destiny
detroit deutschland devil diamond diamonds dickhead doctor dodgers dog doggie doggy dogs dollar dollars dolphin
dolphins donald dortmund doudou dragon dragonball dream dreamer dreams driver driving drummer drums ducati eagle
eagles earth easter eduardo edward egypt einstein elizabeth elmo elvis emerald emily eminem emma england english
enter espana estrella everton everything evil example facebook faith falcon falcons family father february
fenerbahce fernanda fernando ferrari feyenoord ficken fire fishing flamengo florida flower flowers football ford
forest forever forget forgot fortnite forzamilan france francisco freedom french friday friend friends frodo
fucker fuckme fuckoff fuckthis fuckyou gabriel gabriela galatasaray galileo game gamer games gaming gamma
gandalf garden garfield gators geheim general genius gentle george germany ghost giants ginger gladiator gmail
god godisgood goku gold golden golf golfer goodbye goodluck goodmorning google gorgeous grace green greenday
guest guinness guitar hacker hacking hades hallo halloween halo hamburger hamster hannah happiness happy harley
harry haslo hawaii hawk heart hearts heather heaven heineken hell hello hellohello hellokitty hercules hermione
hero heroes history hobbit hockey hogwarts hola holiday honda honey hope horse horses hotmail hottie houston
hulk hunter hunting hurricane iloveu iloveyou india indigo instagram inter internet iphone ireland ironman
isabella isabelle island italia italy jackass jackpot jackson jaguar james january japan jasmin jasmine jason
jasper jennifer jessica jesus jesuschrist jetaime jets jewel john johnny joker jonathan jordan joseph joshua
judo julia juliana juliette july june justin justinbieber juventus karate karen karina katherine kathryn
kawasaki kevin keyboard killer kimberly king kings kiss kisses kitten kittens kitty knight knights kochanie
krishna ladies lady lakers lamborghini laptop lasvegas laura lauren lavender legend legends lemon leopard letme
letmein liberty liebe light lightning lily linkinpark linux lion lions liverpool login logon london longhorns
lord loulou love lovely loveme lover loves loveu loveyou loving lucia lucifer lucky lucy madison madonna madrid
magenta maggie magic magician manager manchester mango march maria mariana marie marina marine marines mario
mariposa marseille martin martina marvel marvin maserati master matrix matthew maverick mazda megan melissa
melvin member mercedes merlin metal metallica mexico mia miami michael michelle mickey mickeymouse microsoft
midnight miguel milan million minecraft minnie misiek mobile mohammed molly mommy monday money monitor monkey
monster moon moonlight morgan moscow mother motherfucker mountain mountains mouse muffin muhammad mummy music
musica mustang mustangs mylove mypassword mysql mystery napoli naruto natalie natasha nature navy nemo network
never newton newyork nicholas nicolas nicole night nights ninja nintendo nirvana nissan nokia noodle nopassword
notebook nothing november number nurse ocean october office oliver olivia olympus omega onedirection onepiece
open opensesame oracle orange orchid oscar packers pakistan palmeiras panther panthers paris parola pass passw
passwd password passwordpass passwords passwort patricia patrick patriots peace peach peanut pearl pepper pepsi
peter pharaoh philip phoenix phoenixsuns phone physics piano pikachu pink pirate pirates pizza platinum player
players playstation please pokemon poker poland police polska pony pooh popcorn porsche portugal postgres potter
pray prayer pretty prince princesa princess printer private public pudding pumas pumpkin puppies puppy purple
pussy qazwsx queen qwerty qwertz rabbit racecar racer rachel racing rafael raiders rainbow ranger rangers ravens
realmadrid reaper rebecca redskins redsox remember ricardo rich richard rihanna river robert roberto roblox
robot rock rockstar rocky roma rooster root rose roses ruby rugby runner running russia rusty sabrina sadie
sailor saints samantha sample samsung samuel samurai sandra sapphire sarah sasuke satan saturday saudade scarlet
schalke schatz school science scientist scooby scoobydoo scorpion scotland seattle sebastian secret security
senha september sergio server service sexy shadow shadows shakira shark sheriff shithead shrek sifre sigma
silver simba simone singer sister sisters skateboard skater sky skywalker slayer slipknot smile smiley smiling
snake snickers sniper snoopy snow snowball snowboard snowman soccer soldier soleil something sommer sonic sophia
sophie spain spanish sparky spartan spartans spears spider spiderman spring stallion star starcraft stardust
starlight stars startrek starwars steelers stella stephanie stephen steven storm strawberry strike student
subaru sugar summer sunday sunflower sunrise sunset sunshine superman support surfer surfing susan suzuki sweet
sweetheart sweetie swimming sydney sylvester system taylor tea teacher teamo telephone temp temporary tennis
tequiero tequila test tester testing texas thanks thankyou theresa thomas thunder thursday tiffany tiger tigger
timothy tinkerbell titan titans toby today tokyo tomorrow tornado tottenham toyota treasure trinity trojan
trojans truck trucker truelove trust trustno tuesday turbo turtle tweety twinkie twitter tyler united university
usa user vader valentina vampire vanessa vanilla vegas veronica victor victoria victory vikings vincent violet
violin viper vodka volleyball volvo wachtwoord wanker warcraft warrior water wednesday weekend welcome welkom
whale whatever whiskey white william willkommen wind windows winner winners winnie winter wizard wolf wolverine
wolves word wrestling xbox yahoo yamaha yankees yellow yesterday yoda yourpassword youtube zelda zeus zombie
zxcvbn
`
