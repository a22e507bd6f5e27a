import type { Texts } from '../elements.js'

/** The pages in French. */
export const fr: Texts = {
  language: 'fr',
  direction: 'ltr',
  common: {
    email: 'Adresse e-mail',
    password: 'Mot de passe',
    newPassword: 'Nouveau mot de passe',
    currentPassword: 'Mot de passe actuel',
    passwordRule: 'Au moins {count} caractères',
    name: 'Nom',
    optionalName: 'Nom (facultatif)',
    role: 'Rôle',
    noRole: 'Aucun',
    remember: 'Rester connecté',
    continue: 'Continuer',
    back: 'Retour',
    signOut: 'Se déconnecter',
    saved: 'Votre modification a été enregistrée.',
    sent: 'Nous vous avons envoyé un e-mail. Suivez le lien qu’il contient.',
    home: 'Retour à l’application'
  },
  connectionTest: {
    title: 'Test de {name}',
    nobody: 'Personne n’a été connecté.',
    works: 'La connexion fonctionne. L’adresse est vérifiée, car son domaine est prouvé.',
    unproven: 'La connexion fonctionne. L’adresse compte comme non vérifiée, car son domaine n’est pas prouvé pour ' +
      'cette connexion.',
    withoutEmail: 'La connexion fonctionne, mais sans adresse e-mail : le fournisseur doit transmettre la ' +
      'revendication « ' +
      'email ».',
    metadataAway: 'Étape 1, métadonnées : elles n’ont pas pu être obtenues. L’émetteur doit répondre en https, à une ' +
      'adresse publique, en quelques secondes.',
    metadata: 'Étape 1, métadonnées : elles sont inutilisables. Elles doivent nommer exactement cet émetteur et ' +
      'des URL ' +
      'en https:.',
    refused: 'Étape 2, connexion chez le fournisseur : il l’a refusée. Vérifiez que la personne peut y utiliser ' +
      'cette ' +
      'application.',
    away: 'Étape 3, jetons : un serveur n’a pas pu être joint. Il doit répondre en https, à une adresse publique, ' +
      'en quelques secondes.',
    tokens: 'Étape 3, jetons : ils ont été refusés. Vérifiez l’identifiant du client, son secret et l’URI de ' +
      'redirection ; le jeton d’identité doit être destiné à ce client et signé par une clé que le fournisseur ' +
      'publie.',
    claims: 'Étape 4, revendications : cette application n’a pas pu utiliser ce que dit le fournisseur.'
  },
  notices: {
    signed_out: 'Vous êtes déconnecté.',
    deleted: 'Votre compte a été supprimé.',
    password_changed: 'Votre mot de passe a été modifié. Connectez-vous avec le nouveau.',
    email_changed: 'L’adresse e-mail a été modifiée.',
    email_confirmed: 'L’adresse e-mail est confirmée.',
    email_released: 'L’adresse e-mail a été retirée du compte.'
  },
  failures: {
    notFound: 'Page introuvable',
    forbidden: 'Accès refusé',
    wait: 'Veuillez patienter',
    refused: 'Cela n’a pas fonctionné',
    fault: 'Une erreur est survenue',
    support: 'Indiquez à l’assistance :'
  },
  signIn: {
    title: 'Se connecter',
    titleAt: 'Se connecter à {name}',
    withProvider: 'Continuer avec {provider}',
    or: 'ou',
    forgot: 'Mot de passe oublié ?',
    register: 'Créer un compte',
    signedInAs: 'Vous êtes connecté en tant que {user}.',
  },
  signOut: {
    title: 'Déconnexion',
    text: 'Vous êtes déconnecté ici. Continuez pour vous déconnecter aussi de {host}.'
  },
  register: {
    signIn: 'Se connecter à un compte existant',
    firstText: 'Nous vous enverrons un lien par e-mail. Ouvrez-le pour continuer.',
    sentTo: 'Nous avons envoyé un e-mail à {email}. Ouvrez son lien pour continuer. Vérifiez aussi vos indésirables.',
    passkey: 'Créer un compte avec une clé d’accès'
  },
  forgotPassword: {
    title: 'Réinitialiser votre mot de passe',
    text: 'Saisissez votre adresse e-mail. Si elle correspond à un compte, nous vous enverrons un lien pour ' +
      'choisir un nouveau mot de passe.',
    submit: 'Recevoir le lien',
    sentTitle: 'Consultez votre boîte de réception',
    sentText: 'Si l’adresse est correcte, vous recevrez un e-mail d’ici quelques minutes. Vérifiez aussi vos ' +
      'indésirables.',
    sentTo: 'Si {email} correspond à un compte, nous vous avons envoyé un e-mail. Ouvrez son lien pour choisir un ' +
      'nouveau mot de passe. Vérifiez aussi vos indésirables.'
  },
  confirm: {
    title: 'Confirmez votre identité',
    text: 'Connectez-vous à nouveau en tant que {user} pour continuer.',
    submit: 'Confirmer',
    signOut: 'Utiliser un autre compte'
  },
  account: {
    title: 'Votre compte',
    change: 'Modifier',
    set: 'Défini',
    notSet: 'Non défini',
    off: 'Non configurée',
    nameSubmit: 'Enregistrer le nom',
    confirmed: 'confirmée',
    unconfirmed: 'non confirmée',
    disputed: 'Un fournisseur ne confirme plus cette adresse. Tant que vous ne l’avez pas confirmée, ' +
      'aucun e-mail ne vous donne accès à votre compte.',
    sendAgain: 'Renvoyer le lien',
    newEmail: 'Nouvelle adresse e-mail',
    emailSubmit: 'Changer d’adresse e-mail',
    addEmail: 'Ajouter l’adresse e-mail',
    passwordSubmit: 'Changer de mot de passe',
    setPassword: 'Définir un mot de passe',
    methodsTitle: 'Méthodes de connexion',
    onlyMethod: 'Votre seule méthode de connexion',
    remove: 'Supprimer',
    removeMethod: 'Supprimer {provider}',
    add: 'Ajouter {provider}',
    addText: 'Vous pourrez ensuite vous connecter en tant que {user} avec {provider} aussi.',
    consentText: '{provider} vous demandera à quoi cette application peut accéder pour vous ({user}).',
    devicesTitle: 'Appareils',
    signedIn: 'Connectés : {count}',
    thisDevice: 'cet appareil',
    unknownDevice: 'Appareil inconnu',
    lastUsed: 'Dernière utilisation : {date}',
    endSession: 'Se déconnecter sur {device}',
    signOutEverywhere: 'Se déconnecter partout',
    deleteText: 'Votre compte et ses données seront supprimés définitivement.',
    delete: 'Supprimer',
    deleteSubmit: 'Supprimer le compte',
  },
  factors: {
    title: 'Sécurité de la connexion',
    secondTitle: 'Encore une étape',
    codeText: 'Saisissez le code affiché par votre application d’authentification ou l’un de vos codes de secours.',
    code: 'Code de vérification',
    trust: 'Ne plus demander sur ce navigateur pendant {time}',
    usePasskey: 'Continuer avec une clé d’accès',
    noScript: 'Les clés d’accès nécessitent JavaScript. Activez-le dans votre navigateur pour les utiliser.',
    passkeyMissing: 'Ce navigateur ne prend pas en charge les clés d’accès.',
    passkeyFailed: 'Cela n’a pas fonctionné. Réessayez.',
    setUp: 'Configurer une application d’authentification',
    requiredTitle: 'Configurez une deuxième étape pour continuer',
    requiredText: 'Cette application exige une deuxième étape à la connexion.',
    appText: 'Ajoutez {issuer} à votre application d’authentification, puis saisissez le code à six chiffres ' +
      'qu’elle affiche.',
    qrCode: 'Code QR pour l’application d’authentification',
    openApp: 'Ouvrir l’application sur cet appareil',
    key: 'Clé à saisir à la main :',
    appCode: 'Code de l’application',
    mailCode: 'Code reçu par e-mail',
    mailText: 'Nous l’avons envoyé à votre adresse e-mail.',
    recoveryTitle: 'Codes de secours',
    recoveryText: 'Si vous ne pouvez pas utiliser votre application d’authentification, chacun de ces codes la ' +
      'remplace une fois. Gardez-les en lieu sûr dès maintenant : ils ne seront plus affichés.',
    saveCodes: 'Enregistrer les codes dans un fichier texte',
    codesSaved: 'J’ai enregistré ces codes',
    confirmText: 'Pour modifier ces réglages, connectez-vous à nouveau.',
    lost: 'J’ai perdu toutes mes clés d’accès',
    app: 'Application d’authentification',
    added: 'Ajoutée le {date}',
    codesLeft: 'Codes restants : {count}',
    newCodes: 'Créer de nouveaux codes',
    newCodesText: 'Les nouveaux codes remplacent ceux que vous avez.',
    list: 'Ce qui protège votre compte',
    passkey: 'Clé d’accès',
    passkeysText: 'Avec une clé d’accès, connectez-vous par empreinte, visage ou verrouillage de votre appareil.',
    passkeyName: 'Nom de la clé d’accès',
    rename: 'Renommer',
    addPasskey: 'Ajouter une clé d’accès'
  },
  mail: {
    ask: 'M’envoyer un e-mail de connexion',
    linkText: 'Vous vous connectez dans ce navigateur en tant que {email}.',
    submit: 'Se connecter',
    codeText: 'Si vous pouvez vous connecter ici avec {email}, nous vous avons envoyé un e-mail. Ouvrez son lien ' +
      'dans ce navigateur ou saisissez le code qu’il contient.',
    elsewhere: 'Ce lien ne vous connecte que dans le navigateur où vous l’avez demandé. Saisissez-y le code reçu par ' +
      'e-mail.',
    newer: 'Un e-mail plus récent a été envoyé. Utilisez son lien ou son code.',
    used: 'Ce lien a déjà été utilisé.',
    otherAddress: 'Utiliser une autre adresse',
    again: 'Envoyer un autre e-mail',
    wait: 'Vous pourrez demander un autre e-mail au plus tôt dans {time}.'
  },
  links: {
    resetText: 'Vos sessions seront fermées sur tous vos appareils. Connectez-vous ensuite avec le nouveau mot ' +
      'de passe.',
    resetSubmit: 'Enregistrer le mot de passe',
    verifyText: 'Un compte a été créé avec cette adresse e-mail le {date}.',
    itWasYou: 'C’était vous',
    verifySubmit: 'Confirmer l’adresse',
    itWasNotYou: 'Ce n’était pas vous',
    releaseField: 'Si vous n’avez pas créé ce compte, saisissez votre adresse e-mail',
    releaseSubmit: 'Retirer l’adresse',
    existingText: 'Ces éléments restent dans votre compte. Si vous ne les avez pas tous ajoutés vous-même, une ' +
      'autre personne a peut-être créé le compte avec votre adresse e-mail : faites-les alors supprimer.',
    existingRemove: 'Pas à moi : tout supprimer',
    changeText: '{to} remplacera {email} comme adresse e-mail de votre compte.',
    changePassword: 'Saisissez votre mot de passe, ou connectez-vous d’abord puis ouvrez à nouveau le lien.',
    addText: '{to} deviendra l’adresse e-mail de votre compte.',
    addSignIn: 'Connectez-vous d’abord, puis ouvrez à nouveau le lien.',
    over: 'Un lien ne fonctionne qu’une fois et pour une durée limitée. Ouvrez le plus récent ou demandez-en un ' +
      'nouveau.',
    askAgain: 'Demander un nouveau lien'
  },
  titles: {
    register: 'Créer un compte',
    'verify-email': 'Confirmez votre adresse e-mail',
    'reset-password': 'Choisissez un nouveau mot de passe',
    'change-email': 'Confirmez votre nouvelle adresse e-mail',
    'sign-in': 'Se connecter par e-mail'
  },
  oauth: {
    title: 'Connecter {client} ?',
    text: '{client} demande à agir pour vous en tant que {user}.',
    from: 'L’application vient de {host}.',
    returns: 'Votre navigateur ira ensuite vers {host}.',
    loopback: 'C’est un programme sur cet appareil. Autorisez-le seulement si vous venez de le lancer vous-même.',
    scheme: 'C’est une application sur cet appareil. Autorisez-la seulement si vous venez de la lancer vous-même.',
    scopes: 'L’application pourra :',
    allow: 'Autoriser',
    deny: 'Annuler',
    another: 'Utiliser un autre compte',
    until: 'Vous pouvez la déconnecter à tout moment sur la page de votre compte.',
    leaving: 'Continuez pour revenir à l’application.',
    failed: 'Cette application ne peut pas être connectée',
    unknownClient: 'L’application qui vous a envoyé ici n’est pas connue.',
    unknownRedirect: 'L’application demande la réponse à une adresse qui n’est pas enregistrée.',
    repeated: 'Un paramètre du lien est répété. Recommencez dans l’application.',
    expired: 'Cette demande a expiré. Recommencez dans l’application.',
    connected: 'Applications connectées',
    none: 'Aucune',
    since: 'Depuis le {date}, dernière utilisation le {used}',
    end: 'Déconnecter',
    endLabel: 'Déconnecter {client}',
    deviceTitle: 'Connecter un appareil',
    deviceText: 'Saisissez le code affiché par l’appareil ou le programme.',
    deviceCode: 'Code',
    deviceQuestion:
      'Avez-vous commencé cela vous-même ? La personne qui vous a envoyé un code aurait accès à votre compte.',
    deviceAsked: 'Demandé il y a {time} depuis {address} ({agent})',
    deviceDone: 'L’appareil est connecté. Vous pouvez fermer cette page.',
    deviceDenied: 'L’appareil n’a pas été connecté.'
  },
  keys: {
    title: 'Clés d’API',
    none: 'Aucune',
    since: 'Créée le {date}, dernière utilisation le {used}',
    unused: 'Créée le {date}, pas encore utilisée',
    expires: 'Expire le {date}',
    end: 'Révoquer la clé',
    endLabel: 'Révoquer la clé {name}',
    name: 'Nom de la clé',
    days: 'Jours avant l’expiration',
    daysHint: 'sans nombre, elle n’expire pas',
    create: 'Créer une clé',
    made: 'Votre clé d’API',
    madeText: 'Copiez la clé maintenant et conservez-la comme un mot de passe : elle ne sera plus affichée.',
    endAll: 'Révoquer aussi toutes les clés d’API'
  },
  impersonation: {
    text: 'Vous voyez ceci en tant que {user}.',
    end: 'Terminer',
    listed: 'Ce service, pour l’assistance'
  },
  errors: {
    invalid: 'L’adresse e-mail ou le mot de passe est incorrect.',
    wrong_password: 'Le mot de passe est incorrect.',
    exists: 'Un compte existe déjà avec cette adresse e-mail. Connectez-vous à ce compte.',
    invalid_email: 'Cette adresse e-mail n’est pas valide.',
    not_this_address: 'Le lien n’a pas été envoyé à cette adresse.',
    passkey_refused: 'Cette clé d’accès n’a pas été acceptée. ' +
      'Elle a peut-être été supprimée du compte. Essayez autrement.',
    unknown_passkey: 'Cette clé d’accès n’appartient plus à aucun compte. Connectez-vous autrement.',
    passkey_exists: 'Vous avez déjà une clé d’accès sur cet appareil.',
    shown_to_another: 'Cette page était ouverte pour un autre compte. Rien n’a été modifié.',
    weak_password: 'Ce mot de passe est trop court ou trop long. Choisissez-en un autre.',
    common_password: 'Ce mot de passe est parmi les plus utilisés, ou contient un mot courant, votre adresse ' +
      'e-mail ou le nom de cette application. Choisissez-en un autre.',
    breached_password: 'Ce mot de passe figure dans une fuite de données. Choisissez-en un autre.',
    invalid_request: 'Ce formulaire est incomplet ou contient une erreur. Vérifiez-le et réessayez.',
    cross_origin: 'Cette requête provient d’un autre site. Réessayez sur cette page.',
    rate_limited: 'Trop de tentatives.',
    rate_limited_wait: 'Trop de tentatives. Réessayez dans {time}.',
    busy: 'Le service est très sollicité. Réessayez dans un instant.',
    unavailable: 'Le service est momentanément indisponible. Réessayez plus tard.',
    internal_error: 'Cela n’a pas fonctionné à cause d’une erreur de cette application. Réessayez plus tard.',
    invalid_state: 'Cette connexion a expiré. Recommencez.',
    access_denied: 'La connexion a été annulée.',
    not_allowed: 'Ce compte n’est pas autorisé à se connecter ici. Utilisez-en un autre ou contactez l’exploitant.',
    provider_error: 'La connexion auprès du fournisseur d’identité a échoué. Réessayez.',
    provider_unavailable: 'Le fournisseur d’identité est momentanément indisponible. Réessayez plus tard.',
    account_exists: 'Un compte existe déjà avec cette adresse e-mail. Connectez-vous comme d’habitude.',
    account_exists_forgot: 'Un compte existe déjà avec cette adresse e-mail. Connectez-vous comme d’habitude, ' +
      'ou choisissez « {forgot} ».',
    already_linked: 'Cette méthode de connexion appartient à un autre compte.',
    invalid_token: 'Ce lien a expiré ou a déjà été utilisé.',
    unauthenticated: 'Connectez-vous d’abord.',
    signed_out: 'Votre session est terminée. Rien n’a été enregistré.',
    sent_twice: 'Cet envoi est arrivé deux fois. Le premier a été exécuté et votre session est terminée. ' +
      'Reconnectez-vous.',
    forbidden: 'Vous n’avez pas l’autorisation de faire cela.',
    impersonating: 'Ce n’est pas possible tant que vous voyez l’application en tant qu’un autre utilisateur. ' +
      'Terminez d’abord.',
    reauthenticate: 'Connectez-vous à nouveau pour continuer.',
    second_factor_required: 'Cette connexion exige une deuxième étape. Saisissez un code ou utilisez une clé d’accès.',
    second_factor_missing: 'Une deuxième étape de connexion est nécessaire ici. Configurez-la d’abord.',
    invalid_code: 'Ce code est incorrect, a expiré ou a déjà été utilisé. Saisissez-en un nouveau.',
    wrong_set_up_code: 'Ce code est incorrect. Vérifiez que l’heure de votre téléphone est juste et que ' +
      'l’application a la clé de cette page : chaque nouvelle configuration en crée une autre.',
    too_many: 'Vous ne pouvez pas en ajouter davantage. Supprimez-en d’abord.',
    choice_required: 'Choisissez de conserver ou de supprimer ce que le compte comporte déjà.',
    last_link: 'C’est votre seule méthode de connexion. Ajoutez-en d’abord une autre.',
    user_in_use: 'Ce compte ne peut pas encore être supprimé, car d’autres données y font référence.',
    not_found: 'Cet élément n’existe plus.',
    sso_required: 'Cette adresse appartient à une organisation qui a son propre fournisseur de connexion.',
    blocked: 'Ce compte est bloqué.',
    unverified: 'Confirmez d’abord votre adresse e-mail. Nous vous avons envoyé un lien.',
    email_missing: 'Ajoutez d’abord votre adresse e-mail. Votre compte n’en a pas encore.',
    other: 'La connexion a été refusée.'
  }
}
