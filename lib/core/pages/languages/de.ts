import type { Texts } from '../elements.js'

/** The pages in German. */
export const de: Texts = {
  language: 'de',
  direction: 'ltr',
  common: {
    email: 'E-Mail-Adresse',
    password: 'Passwort',
    newPassword: 'Neues Passwort',
    currentPassword: 'Aktuelles Passwort',
    passwordRule: 'Mindestens {count} Zeichen',
    name: 'Name',
    optionalName: 'Name (freiwillig)',
    role: 'Rolle',
    noRole: 'Keine',
    remember: 'Angemeldet bleiben',
    continue: 'Weiter',
    back: 'Zurück',
    signOut: 'Abmelden',
    saved: 'Ihre Änderung wurde gespeichert.',
    sent: 'Wir haben Ihnen eine E-Mail geschickt. Folgen Sie dem Link darin.',
    home: 'Zurück zur Anwendung'
  },
  connectionTest: {
    title: 'Test von {name}',
    nobody: 'Niemand wurde angemeldet.',
    works: 'Die Anmeldung funktioniert. Die Adresse ist bestätigt, weil ihre Domain nachgewiesen ist.',
    unproven: 'Die Anmeldung funktioniert. Die Adresse gilt als unbestätigt, weil ihre Domain für diese Verbindung ' +
      'nicht nachgewiesen ist.',
    withoutEmail: 'Die Anmeldung funktioniert, aber ohne E-Mail-Adresse: Der Anbieter muss den Claim „email“ liefern.',
    metadataAway: 'Schritt 1, Metadaten: Sie konnten nicht abgerufen werden. Der Aussteller muss über https, ' +
      'unter einer ' +
      'öffentlichen Adresse und innerhalb von Sekunden antworten.',
    metadata: 'Schritt 1, Metadaten: Sie sind nicht verwendbar. Sie müssen genau diesen Aussteller und https:-URLs ' +
      'nennen.',
    refused: 'Schritt 2, Anmeldung beim Anbieter: Er hat sie abgelehnt. Prüfen Sie, ob die Person diese ' +
      'Anwendung dort ' +
      'benutzen darf.',
    away: 'Schritt 3, Tokens: Ein Server war nicht erreichbar. Er muss über https, unter einer öffentlichen Adresse ' +
      'und innerhalb von Sekunden antworten.',
    tokens: 'Schritt 3, Tokens: Sie wurden abgelehnt. Prüfen Sie Client-ID, Secret und Redirect-URI; das ID-Token ' +
      'muss für diesen Client ausgestellt und mit einem veröffentlichten Schlüssel des Anbieters signiert sein.',
    claims: 'Schritt 4, Claims: Diese Anwendung kann mit den Angaben des Anbieters nichts anfangen.'
  },
  notices: {
    signed_out: 'Sie sind abgemeldet.',
    deleted: 'Ihr Konto wurde gelöscht.',
    password_changed: 'Ihr Passwort wurde geändert. Melden Sie sich mit dem neuen an.',
    email_changed: 'Die E-Mail-Adresse wurde geändert.',
    email_confirmed: 'Die E-Mail-Adresse ist bestätigt.',
    email_released: 'Die E-Mail-Adresse wurde aus dem Konto entfernt.'
  },
  failures: {
    notFound: 'Seite nicht gefunden',
    forbidden: 'Nicht erlaubt',
    wait: 'Bitte warten',
    refused: 'Das hat nicht geklappt',
    fault: 'Etwas ist schiefgegangen',
    support: 'Teilen Sie dem Support mit:'
  },
  signIn: {
    title: 'Anmelden',
    titleAt: 'Bei {name} anmelden',
    withProvider: 'Weiter mit {provider}',
    or: 'oder',
    forgot: 'Passwort vergessen?',
    register: 'Konto erstellen',
    signedInAs: 'Sie sind als {user} angemeldet.',
  },
  signOut: {
    title: 'Abmeldung',
    text: 'Sie sind hier abgemeldet. Fahren Sie fort, um sich auch bei {host} abzumelden.'
  },
  register: {
    signIn: 'Mit einem bestehenden Konto anmelden',
    firstText: 'Wir schicken Ihnen einen Link per E-Mail. Öffnen Sie ihn, um fortzufahren.',
    sentTo: 'Wir haben eine E-Mail an {email} geschickt. Öffnen Sie den Link darin, um fortzufahren. Sehen Sie auch ' +
      'im Spam-Ordner nach.',
    passkey: 'Konto mit einem Passkey erstellen'
  },
  forgotPassword: {
    title: 'Passwort zurücksetzen',
    text: 'Geben Sie Ihre E-Mail-Adresse ein. Gehört sie zu einem Konto, schicken wir Ihnen einen Link, mit dem ' +
      'Sie ein neues Passwort wählen können.',
    submit: 'Link anfordern',
    sentTitle: 'Prüfen Sie Ihren Posteingang',
    sentText: 'Wenn die Adresse stimmt, erhalten Sie in wenigen Minuten eine E-Mail. Sehen Sie auch im ' +
      'Spam-Ordner nach.',
    sentTo: 'Wenn {email} zu einem Konto gehört, haben wir Ihnen eine E-Mail geschickt. Öffnen Sie den Link darin, ' +
      'um ein neues Passwort zu wählen. Sehen Sie auch im Spam-Ordner nach.'
  },
  confirm: {
    title: 'Bestätigen Sie, dass Sie es sind',
    text: 'Melden Sie sich noch einmal als {user} an, um fortzufahren.',
    submit: 'Bestätigen',
    signOut: 'Mit einem anderen Konto anmelden'
  },
  account: {
    title: 'Ihr Konto',
    change: 'Ändern',
    set: 'Festgelegt',
    notSet: 'Nicht festgelegt',
    off: 'Nicht eingerichtet',
    nameSubmit: 'Namen speichern',
    confirmed: 'bestätigt',
    unconfirmed: 'nicht bestätigt',
    disputed: 'Ein Anbieter bestätigt diese Adresse nicht mehr. Bis Sie sie bestätigen, kommen Sie ' +
      'per E-Mail nicht in Ihr Konto.',
    sendAgain: 'Link erneut senden',
    newEmail: 'Neue E-Mail-Adresse',
    emailSubmit: 'E-Mail-Adresse ändern',
    addEmail: 'E-Mail-Adresse hinzufügen',
    passwordSubmit: 'Passwort ändern',
    setPassword: 'Passwort festlegen',
    methodsTitle: 'Anmeldemethoden',
    onlyMethod: 'Ihre einzige Anmeldemethode',
    remove: 'Entfernen',
    removeMethod: '{provider} entfernen',
    add: '{provider} hinzufügen',
    addText: 'Danach können Sie sich als {user} auch mit {provider} anmelden.',
    consentText: '{provider} fragt Sie, worauf diese Anwendung für Sie ({user}) zugreifen darf.',
    devicesTitle: 'Geräte',
    signedIn: 'Angemeldet: {count}',
    thisDevice: 'dieses Gerät',
    unknownDevice: 'Unbekanntes Gerät',
    lastUsed: 'Zuletzt verwendet am {date}',
    endSession: 'Auf {device} abmelden',
    signOutEverywhere: 'Überall abmelden',
    deleteText: 'Ihr Konto und seine Daten werden endgültig gelöscht.',
    delete: 'Löschen',
    deleteSubmit: 'Konto löschen',
  },
  factors: {
    title: 'Sicherheit bei der Anmeldung',
    secondTitle: 'Noch ein Schritt',
    codeText: 'Geben Sie den Code aus Ihrer Authenticator-App oder einen Ihrer Wiederherstellungscodes ein.',
    code: 'Bestätigungscode',
    trust: 'In diesem Browser {time} lang nicht mehr fragen',
    usePasskey: 'Weiter mit einem Passkey',
    noScript: 'Passkeys brauchen JavaScript. Schalten Sie es in Ihrem Browser ein, um sie zu benutzen.',
    passkeyMissing: 'Dieser Browser unterstützt keine Passkeys.',
    passkeyFailed: 'Das hat nicht geklappt. Versuchen Sie es noch einmal.',
    setUp: 'Authenticator-App einrichten',
    requiredTitle: 'Richten Sie einen zweiten Anmeldeschritt ein',
    requiredText: 'Diese Anwendung verlangt bei der Anmeldung einen zweiten Schritt.',
    appText: 'Fügen Sie {issuer} in Ihrer Authenticator-App hinzu. Geben Sie dann den sechsstelligen Code ein, ' +
      'den die App anzeigt.',
    qrCode: 'QR-Code für die Authenticator-App',
    openApp: 'App auf diesem Gerät öffnen',
    key: 'Schlüssel zum Eintippen:',
    appCode: 'Code aus der App',
    mailCode: 'Code aus der E-Mail',
    mailText: 'Wir haben ihn an Ihre E-Mail-Adresse geschickt.',
    recoveryTitle: 'Wiederherstellungscodes',
    recoveryText: 'Wenn Sie Ihre Authenticator-App nicht benutzen können, ersetzt jeder dieser Codes sie einmal. ' +
      'Bewahren Sie sie sicher auf: Sie werden nur jetzt angezeigt.',
    saveCodes: 'Codes als Textdatei speichern',
    codesSaved: 'Ich habe diese Codes gespeichert',
    confirmText: 'Melden Sie sich noch einmal an, bevor Sie hier etwas ändern.',
    lost: 'Ich habe alle meine Passkeys verloren',
    app: 'Authenticator-App',
    added: 'Hinzugefügt am {date}',
    codesLeft: 'Noch übrige Codes: {count}',
    newCodes: 'Neue Codes erstellen',
    newCodesText: 'Neue Codes ersetzen die bisherigen.',
    list: 'Was Ihr Konto schützt',
    passkey: 'Passkey',
    passkeysText: 'Mit einem Passkey melden Sie sich per Fingerabdruck, Gesicht oder Bildschirmsperre Ihres Geräts an.',
    passkeyName: 'Name des Passkeys',
    rename: 'Umbenennen',
    addPasskey: 'Passkey hinzufügen'
  },
  mail: {
    ask: 'Anmeldung per E-Mail senden',
    linkText: 'Sie melden sich in diesem Browser als {email} an.',
    submit: 'Anmelden',
    codeText: 'Wenn Sie sich hier mit {email} anmelden können, haben wir Ihnen eine E-Mail geschickt. Öffnen Sie ' +
      'den Link in diesem Browser, oder geben Sie den Code aus der E-Mail ein.',
    elsewhere: 'Dieser Link meldet Sie nur in dem Browser an, in dem Sie ihn angefordert haben. Geben Sie dort den ' +
      'Code aus der E-Mail ein.',
    newer: 'Es wurde eine neuere E-Mail geschickt. Verwenden Sie deren Link oder Code.',
    used: 'Dieser Link wurde schon verwendet.',
    otherAddress: 'Andere Adresse verwenden',
    again: 'Neue E-Mail senden',
    wait: 'Eine weitere E-Mail können Sie frühestens in {time} anfordern.'
  },
  links: {
    resetText: 'Sie werden auf allen Geräten abgemeldet. Melden Sie sich danach mit dem neuen Passwort an.',
    resetSubmit: 'Passwort speichern',
    verifyText: 'Mit dieser E-Mail-Adresse wurde am {date} ein Konto erstellt.',
    itWasYou: 'Das waren Sie',
    verifySubmit: 'Adresse bestätigen',
    itWasNotYou: 'Das waren nicht Sie',
    releaseField: 'Wenn Sie dieses Konto nicht erstellt haben, geben Sie Ihre E-Mail-Adresse ein',
    releaseSubmit: 'Adresse entfernen',
    existingText: 'Das bleibt in Ihrem Konto. Wenn Sie nicht alles davon selbst hinzugefügt haben, hat ' +
      'vielleicht jemand anderes das Konto mit Ihrer E-Mail-Adresse angelegt: Lassen Sie es dann entfernen.',
    existingRemove: 'Nicht von mir: alles entfernen',
    changeText: '{to} ersetzt {email} als E-Mail-Adresse Ihres Kontos.',
    changePassword: 'Geben Sie Ihr Passwort ein, oder melden Sie sich zuerst an und öffnen den Link noch einmal.',
    addText: '{to} wird die E-Mail-Adresse Ihres Kontos.',
    addSignIn: 'Melden Sie sich zuerst an, und öffnen Sie den Link noch einmal.',
    over: 'Ein Link gilt nur einmal und nur für begrenzte Zeit. Öffnen Sie den neuesten, oder fordern Sie einen ' +
      'neuen an.',
    askAgain: 'Neuen Link anfordern'
  },
  titles: {
    register: 'Konto erstellen',
    'verify-email': 'E-Mail-Adresse bestätigen',
    'reset-password': 'Neues Passwort wählen',
    'change-email': 'Neue E-Mail-Adresse bestätigen',
    'sign-in': 'Per E-Mail anmelden'
  },
  oauth: {
    title: '{client} verbinden?',
    text: '{client} möchte als {user} für Sie handeln.',
    from: 'Die Anwendung stammt von {host}.',
    returns: 'Ihr Browser geht danach zu {host}.',
    loopback: 'Es ist ein Programm auf diesem Gerät. Erlauben Sie es nur, wenn Sie es gerade selbst gestartet haben.',
    scheme: 'Es ist eine App auf diesem Gerät. Erlauben Sie es nur, wenn Sie sie gerade selbst gestartet haben.',
    scopes: 'Die Anwendung darf:',
    allow: 'Erlauben',
    deny: 'Abbrechen',
    another: 'Anderes Konto verwenden',
    until: 'Sie können die Verbindung jederzeit auf der Seite Ihres Kontos trennen.',
    leaving: 'Weiter geht es zurück zur Anwendung.',
    failed: 'Diese Anwendung kann nicht verbunden werden',
    unknownClient: 'Die Anwendung, von der Sie kommen, ist nicht bekannt.',
    unknownRedirect: 'Die Anwendung möchte die Antwort an eine Adresse, die nicht registriert ist.',
    repeated: 'Ein Parameter des Links kommt zweimal vor. Beginnen Sie in der Anwendung von vorn.',
    expired: 'Diese Anfrage ist abgelaufen. Beginnen Sie in der Anwendung von vorn.',
    connected: 'Verbundene Anwendungen',
    none: 'Keine',
    since: 'Seit {date}, zuletzt benutzt {used}',
    end: 'Trennen',
    endLabel: '{client} trennen',
    deviceTitle: 'Ein Gerät verbinden',
    deviceText: 'Geben Sie den Code ein, den das Gerät oder Programm zeigt.',
    deviceCode: 'Code',
    deviceQuestion: 'Haben Sie das selbst begonnen? Wer Ihnen einen Code geschickt hat, bekäme Zugriff auf Ihr Konto.',
    deviceAsked: 'Angefragt vor {time} von {address} ({agent})',
    deviceDone: 'Das Gerät ist verbunden. Sie können diese Seite schließen.',
    deviceDenied: 'Das Gerät wurde nicht verbunden.'
  },
  keys: {
    title: 'API-Schlüssel',
    none: 'Keine',
    since: 'Erstellt am {date}, zuletzt benutzt am {used}',
    unused: 'Erstellt am {date}, noch nicht benutzt',
    expires: 'Läuft am {date} ab',
    end: 'Schlüssel beenden',
    endLabel: 'Schlüssel beenden: {name}',
    name: 'Name des Schlüssels',
    days: 'Tage, bis er abläuft',
    daysHint: 'ohne Zahl läuft er nicht ab',
    create: 'Schlüssel erstellen',
    made: 'Ihr API-Schlüssel',
    madeText: 'Kopieren Sie den Schlüssel jetzt und bewahren Sie ihn wie ein Passwort auf: Er wird nicht noch ' +
      'einmal angezeigt.',
    endAll: 'Auch alle API-Schlüssel beenden'
  },
  impersonation: {
    text: 'Sie sehen dies als {user}.',
    end: 'Beenden',
    listed: 'Dieser Dienst, zur Unterstützung'
  },
  errors: {
    invalid: 'E-Mail-Adresse oder Passwort ist falsch.',
    wrong_password: 'Das Passwort ist falsch.',
    exists: 'Es gibt schon ein Konto mit dieser E-Mail-Adresse. Melden Sie sich stattdessen an.',
    invalid_email: 'Das ist keine gültige E-Mail-Adresse.',
    not_this_address: 'An diese Adresse wurde der Link nicht geschickt.',
    passkey_refused: 'Dieser Passkey wurde nicht angenommen. ' +
      'Vielleicht wurde er aus dem Konto entfernt. Versuchen Sie es auf anderem Weg.',
    unknown_passkey: 'Dieser Passkey gehört zu keinem Konto mehr. Melden Sie sich auf anderem Weg an.',
    passkey_exists: 'Auf diesem Gerät haben Sie schon einen Passkey.',
    shown_to_another: 'Diese Seite war für ein anderes Konto geöffnet. Es wurde nichts geändert.',
    weak_password: 'Dieses Passwort ist zu kurz oder zu lang. Wählen Sie ein anderes.',
    common_password: 'Dieses Passwort ist eines der häufigsten oder enthält ein gängiges Wort, Ihre E-Mail-Adresse ' +
      'oder den Namen dieser Anwendung. Wählen Sie ein anderes.',
    breached_password: 'Dieses Passwort wurde in einem Datenleck gefunden. Wählen Sie ein anderes.',
    invalid_request: 'In diesem Formular fehlt etwas, oder es ist etwas falsch. Prüfen Sie Ihre Angaben.',
    cross_origin: 'Diese Anfrage kam von einer anderen Website. Versuchen Sie es auf dieser Seite noch einmal.',
    rate_limited: 'Zu viele Versuche.',
    rate_limited_wait: 'Zu viele Versuche. Versuchen Sie es in {time} noch einmal.',
    busy: 'Der Dienst ist gerade stark ausgelastet. Versuchen Sie es gleich noch einmal.',
    unavailable: 'Der Dienst ist gerade nicht verfügbar. Versuchen Sie es später noch einmal.',
    internal_error: 'Wegen eines Fehlers in dieser Anwendung hat das nicht geklappt. Versuchen Sie es später.',
    invalid_state: 'Diese Anmeldung ist abgelaufen. Beginnen Sie noch einmal von vorn.',
    access_denied: 'Die Anmeldung wurde abgebrochen.',
    not_allowed: 'Dieses Konto ist hier nicht zugelassen. Nehmen Sie ein anderes, oder fragen Sie den Betreiber.',
    provider_error: 'Die Anmeldung beim Anbieter ist fehlgeschlagen. Versuchen Sie es noch einmal.',
    provider_unavailable: 'Der Anbieter ist gerade nicht erreichbar. Versuchen Sie es später noch einmal.',
    account_exists: 'Es gibt schon ein Konto mit dieser E-Mail-Adresse. Melden Sie sich damit so an wie bisher.',
    account_exists_forgot: 'Es gibt schon ein Konto mit dieser E-Mail-Adresse. Melden Sie sich so an wie ' +
      'bisher, oder wählen Sie „{forgot}“.',
    already_linked: 'Diese Anmeldemethode gehört zu einem anderen Konto.',
    invalid_token: 'Dieser Link ist abgelaufen oder wurde bereits verwendet.',
    unauthenticated: 'Melden Sie sich zuerst an.',
    signed_out: 'Sie wurden abgemeldet. Es wurde nichts gespeichert.',
    sent_twice: 'Das wurde zweimal gesendet. Beim ersten Mal wurde es ausgeführt, und Sie wurden ' +
      'abgemeldet. Melden Sie sich neu an.',
    forbidden: 'Dazu sind Sie nicht berechtigt.',
    impersonating: 'Das ist nicht möglich, solange Sie die Anwendung als jemand anderes sehen. Beenden Sie das zuerst.',
    reauthenticate: 'Melden Sie sich noch einmal an, um fortzufahren.',
    second_factor_required: 'Diese Anmeldung braucht einen zweiten Schritt: einen Code oder einen Passkey.',
    second_factor_missing: 'Dafür ist ein zweiter Anmeldeschritt nötig. Richten Sie ihn zuerst ein.',
    invalid_code: 'Dieser Code ist falsch, abgelaufen oder schon benutzt. Geben Sie einen neuen ein.',
    wrong_set_up_code: 'Dieser Code stimmt nicht. Prüfen Sie, ob die Uhr Ihres Telefons richtig geht und ob ' +
      'die App den Schlüssel von dieser Seite hat: Jede neue Einrichtung erzeugt einen anderen.',
    too_many: 'Mehr können Sie nicht hinzufügen. Entfernen Sie zuerst etwas.',
    choice_required: 'Wählen Sie, ob Sie behalten oder entfernen, was das Konto bereits hat.',
    last_link: 'Das ist Ihre einzige Anmeldemethode. Fügen Sie zuerst eine andere hinzu.',
    user_in_use: 'Dieses Konto kann noch nicht gelöscht werden, weil andere Daten darauf verweisen.',
    not_found: 'Das gibt es nicht mehr.',
    sso_required: 'Diese Adresse gehört zu einer Organisation, die einen eigenen Anbieter für die Anmeldung hat.',
    blocked: 'Dieses Konto ist gesperrt.',
    unverified: 'Bestätigen Sie zuerst Ihre E-Mail-Adresse. Wir haben Ihnen einen Link geschickt.',
    email_missing: 'Fügen Sie zuerst Ihre E-Mail-Adresse hinzu. Ihr Konto hat noch keine.',
    other: 'Die Anmeldung wurde abgelehnt.'
  }
}
