import type { MailLanguage } from '../mail-language.js'

/** The mails in German. */
export const de: MailLanguage = {
  language: 'de',
  direction: 'ltr',
  hello: 'Hallo,',
  helloName: 'Hallo {name},',
  copyLink: 'Falls die Schaltfläche nicht geht, öffnen Sie diesen Link:',
  lasts: 'Das gilt {time} lang.',
  ignore: 'Falls Sie das nicht angefordert haben, ignorieren Sie diese E-Mail.',
  origin: 'Herkunft:',
  browser: 'Gerät: {device}',
  unknownBrowser: 'unbekannt',
  time: 'Zeit: {time}',
  place: 'Ort: {place}',
  account: 'Ihr Konto:',
  reason: 'Diese E-Mail ging an {to}, weil ein Konto bei {name} diese Adresse hat oder jemand sie dort eingegeben hat.',
  support: 'Fragen?',
  kinds: {
    register: {
      subject: 'Registrierung abschließen',
      button: 'Konto erstellen',
      text: 'Öffnen Sie den Link, um Ihr Konto zu erstellen.'
    },
    'verify-email': {
      subject: 'E-Mail-Adresse bestätigen',
      button: 'Adresse bestätigen',
      text: 'Ihr Konto hat diese Adresse. Bestätigen Sie über den Link, dass sie Ihnen gehört, oder melden Sie, ' +
        'dass das Konto nicht von Ihnen ist.'
    },
    'reset-password': {
      subject: 'Neues Passwort wählen',
      button: 'Passwort wählen',
      text: 'Für Ihr Konto wurde ein neues Passwort angefordert. Öffnen Sie den Link, um es zu wählen.'
    },
    'change-email': {
      subject: 'Neue E-Mail-Adresse bestätigen',
      button: 'Adresse bestätigen',
      text: 'Öffnen Sie den Link, um diese Adresse als die neue Ihres Kontos zu bestätigen.'
    },
    'sign-in': {
      subject: 'Ihr Link zum Anmelden',
      button: 'Anmelden',
      text: 'Öffnen Sie den Link in dem Browser, in dem Sie ihn angefordert haben, oder geben Sie dort den Code ' +
        'ein, falls einer dabei ist.'
    },
    enrolment: {
      subject: 'Ihr Code',
      text: 'Dieser Code richtet einen zweiten Faktor ein oder ersetzt Passkeys, die Sie verloren haben. ' +
        'Falls Sie das nicht tun, kennt jemand Ihr Passwort: Ändern Sie es.'
    },
    exists: {
      subject: 'Sie haben bereits ein Konto',
      text: 'Jemand wollte sich mit Ihrer Adresse registrieren, zu der es bereits ein Konto gibt. ' +
        'Falls Sie das waren, melden Sie sich an. Falls nicht, ist nichts zu tun.'
    },
    'unknown-address': {
      subject: 'Sie haben kein Konto',
      text: 'Jemand wollte sich mit Ihrer Adresse anmelden oder ein neues Passwort wählen. ' +
        'Zu dieser Adresse gibt es kein Konto. Falls Sie das nicht waren, ist nichts zu tun.'
    },
    'password-changed': {
      subject: 'Ihr Passwort wurde geändert',
      text: 'Ihr Konto hat ein neues Passwort. Alle anderen Sitzungen sind beendet. ' +
        'Falls Sie das nicht waren, setzen Sie Ihr Passwort sofort zurück.'
    },
    'email-proven': {
      subject: 'Ihre E-Mail-Adresse wurde bestätigt',
      text: 'Diese Adresse wurde zum ersten Mal bestätigt. ' +
        'Anmeldemethoden, die zuvor hinzugefügt wurden, sind entfernt. ' +
        'Falls Sie das nicht waren, melden Sie sich sofort bei uns.'
    },
    'email-changed': {
      subject: 'Ihre E-Mail-Adresse wurde geändert',
      text: 'Die E-Mail-Adresse Ihres Kontos wurde geändert. Falls Sie das nicht waren, melden Sie sich sofort bei uns.'
    },
    'email-change-requested': {
      subject: 'Neue E-Mail-Adresse angefordert',
      text: 'Ihr Konto erhält eine andere E-Mail-Adresse, sobald sie bestätigt ist. ' +
        'Falls Sie das nicht waren, ändern Sie Ihr Passwort.'
    },
    'email-disputed': {
      subject: 'Bestätigen Sie Ihre E-Mail-Adresse',
      text: 'Ein Anbieter bürgt nicht mehr für diese Adresse. ' +
        'Melden Sie sich an und bestätigen Sie sie auf der Seite Ihres Kontos.'
    },
    'identity-linked': {
      subject: 'Anmeldemethode hinzugefügt',
      text: 'Ihr Konto hat eine neue Anmeldemethode. Falls Sie das nicht waren, entfernen Sie sie und ändern Sie ' +
        'Ihr Passwort.'
    },
    'identity-unlinked': {
      subject: 'Anmeldemethode entfernt',
      text: 'Eine Anmeldemethode Ihres Kontos wurde entfernt. Falls Sie das nicht waren, ändern Sie Ihr Passwort.'
    },
    'factor-added': {
      subject: 'Zweiter Faktor hinzugefügt',
      text: 'Ihr Konto hat einen neuen zweiten Faktor oder Passkey. ' +
        'Falls Sie das nicht waren, entfernen Sie ihn und ändern Sie Ihr Passwort.'
    },
    'factor-removed': {
      subject: 'Zweiter Faktor entfernt',
      text: 'Ein zweiter Faktor oder Passkey Ihres Kontos wurde entfernt. ' +
        'Falls Sie das nicht waren, ändern Sie Ihr Passwort.'
    },
    'recovery-codes-renewed': {
      subject: 'Ihre Wiederherstellungscodes wurden ersetzt',
      text: 'Nur die neuen Wiederherstellungscodes gelten. ' +
        'Falls Sie das nicht waren, ändern Sie Ihr Passwort und ersetzen Sie die Codes.'
    },
    'recovery-code-used': {
      subject: 'Ein Wiederherstellungscode wurde verwendet',
      text: 'Jemand hat sich mit einem Wiederherstellungscode angemeldet. ' +
        'Falls Sie das nicht waren, ändern Sie Ihr Passwort und ersetzen Sie die Codes.'
    },
    'too-many-codes': {
      subject: 'Jemand rät Codes für Ihr Konto',
      text: 'Jemand ist bis zum zweiten Faktor gekommen und hat falsche Codes gesendet. ' +
        'Falls Sie das nicht waren, ändern Sie Ihr Passwort.'
    },
    'passkey-cloned': {
      subject: 'Ein Passkey wurde abgelehnt',
      text: 'Möglicherweise gibt es eine Kopie eines Ihrer Passkeys. Entfernen Sie ihn und fügen Sie einen neuen hinzu.'
    },
    'application-connected': {
      subject: 'Eine Anwendung wurde verbunden',
      text: 'Eine Anwendung kann jetzt für Sie handeln. ' +
        'Falls Sie das nicht waren, trennen Sie sie und ändern Sie Ihr Passwort.'
    },
    'token-replayed': {
      subject: 'Eine verbundene Anwendung wurde möglicherweise kopiert',
      text: 'Ein altes Token einer Anwendung, die Sie verbunden haben, wurde verwendet. Trennen Sie sie im Zweifel.'
    },
    'key-created': {
      subject: 'Ein API-Schlüssel wurde erstellt',
      text: 'Ihr Konto hat einen neuen API-Schlüssel. Falls Sie das nicht waren, beenden Sie ihn und ändern Sie ' +
        'Ihr Passwort.'
    },
    impersonated: {
      subject: 'Der Support hat Ihr Konto angesehen',
      text: 'Eine Person aus unserem Support hat die Anwendung so gesehen, wie Sie sie sehen. ' +
        'Ihr Konto konnte sie nicht ändern.'
    },
    'domain-lapsed': {
      subject: 'Eine Domain Ihrer Anmeldeverbindung ist nicht mehr nachgewiesen',
      text: 'Der DNS-Eintrag, der {domain} nachweist, fehlt seit einer Woche. Bis Sie ihn wieder eintragen und ' +
        'prüfen lassen, kommt niemand durch Ihre Anmeldeverbindung hinzu, und sie ist für niemanden vorgeschrieben.'
    },
    'new-browser': {
      subject: 'Anmeldung in einem neuen Browser',
      text: 'Jemand hat sich in einem Browser, den wir noch nicht kennen, bei Ihrem Konto angemeldet. ' +
        'Falls Sie das nicht waren, beenden Sie die Sitzung unter Ihren Geräten und ändern Sie Ihr Passwort.'
    }
  }
}
