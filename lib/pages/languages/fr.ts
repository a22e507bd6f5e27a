import type { Texts } from '../texts.js'

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
    wait: 'Réessayez dans {time}.',
    home: 'Retour à l’application'
  },
  notices: {
    signed_out: 'Vous êtes déconnecté.',
    deleted: 'Votre compte a été supprimé.',
    password_changed: 'Votre mot de passe a été modifié. Connectez-vous avec le nouveau.',
    email_changed: 'L’adresse e-mail a été modifiée.',
    email_confirmed: 'L’adresse e-mail est confirmée.',
    email_released: 'L’adresse e-mail a été retirée du compte.'
  },
  signIn: {
    title: 'Se connecter',
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
  },
  forgotPassword: {
    title: 'Réinitialiser votre mot de passe',
    text: 'Saisissez votre adresse e-mail. Si elle correspond à un compte, nous vous enverrons un lien pour ' +
      'choisir un nouveau mot de passe.',
    submit: 'Recevoir le lien',
    sentTitle: 'Consultez votre boîte de réception',
    sentText: 'Si l’adresse est correcte, vous recevrez un e-mail d’ici quelques minutes. Vérifiez aussi vos ' +
      'indésirables.'
  },
  confirm: {
    title: 'Confirmez votre identité',
    text: 'Connectez-vous à nouveau en tant que {user} pour continuer.',
    submit: 'Confirmer',
    signOut: 'Utiliser un autre compte'
  },
  account: {
    title: 'Votre compte',
    nameSubmit: 'Enregistrer le nom',
    confirmed: 'confirmée',
    unconfirmed: 'non confirmée',
    sendAgain: 'Renvoyer le lien',
    newEmail: 'Nouvelle adresse e-mail',
    emailSubmit: 'Changer d’adresse e-mail',
    passwordSubmit: 'Changer de mot de passe',
    setPassword: 'Définir un mot de passe',
    methodsTitle: 'Méthodes de connexion',
    onlyMethod: 'Votre seule méthode de connexion',
    remove: 'Supprimer',
    removeMethod: 'Supprimer {provider}',
    add: 'Ajouter {provider}',
    devicesTitle: 'Appareils',
    thisDevice: 'cet appareil',
    unknownDevice: 'Appareil inconnu',
    lastUsed: 'Dernière utilisation : {date}',
    endSession: 'Se déconnecter sur {device}',
    signOutEverywhere: 'Se déconnecter partout',
    deleteText: 'Votre compte et ses données seront supprimés définitivement.',
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
    confirmText: 'Pour modifier ces réglages, connectez-vous à nouveau.',
    lost: 'J’ai perdu toutes mes clés d’accès',
    app: 'Application d’authentification',
    added: 'Ajoutée le {date}',
    codesLeft: 'Codes restants : {count}',
    newCodes: 'Créer de nouveaux codes',
    newCodesText: 'Les nouveaux codes remplacent ceux que vous avez.',
    passkeys: 'Vos clés d’accès',
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
    again: 'Envoyer un autre e-mail'
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
    changeText: '{to} remplacera {email} comme adresse e-mail de votre compte.',
    changePassword: 'Saisissez votre mot de passe, ou connectez-vous d’abord puis ouvrez à nouveau le lien.',
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
  errors: {
    invalid: 'L’adresse e-mail ou le mot de passe est incorrect.',
    exists: 'Un compte existe déjà avec cette adresse e-mail. Connectez-vous à ce compte.',
    invalid_email: 'Cette adresse e-mail n’est pas valide.',
    not_this_address: 'Le lien n’a pas été envoyé à cette adresse.',
    passkey_refused: 'Cette clé d’accès n’a pas été acceptée. ' +
      'Elle a peut-être été supprimée du compte. Essayez autrement.',
    unknown_passkey: 'Cette clé d’accès n’appartient plus à aucun compte. Connectez-vous autrement.',
    passkey_exists: 'Vous avez déjà une clé d’accès sur cet appareil.',
    weak_password: 'Ce mot de passe est trop court ou trop long. Choisissez-en un autre.',
    common_password: 'Ce mot de passe est parmi les plus utilisés, ou contient un mot courant, votre adresse ' +
      'e-mail ou le nom de cette application. Choisissez-en un autre.',
    breached_password: 'Ce mot de passe figure dans une fuite de données. Choisissez-en un autre.',
    invalid_request: 'Ce formulaire est incomplet ou contient une erreur. Vérifiez-le et réessayez.',
    cross_origin: 'Cette requête provient d’un autre site. Réessayez sur cette page.',
    rate_limited: 'Trop de tentatives.',
    busy: 'Le service est très sollicité. Réessayez dans un instant.',
    unavailable: 'Le service est momentanément indisponible. Réessayez plus tard.',
    invalid_state: 'Cette connexion a expiré. Recommencez.',
    access_denied: 'La connexion a été annulée.',
    provider_error: 'La connexion auprès du fournisseur d’identité a échoué. Réessayez.',
    provider_unavailable: 'Le fournisseur d’identité est momentanément indisponible. Réessayez plus tard.',
    account_exists: 'Un compte existe déjà avec cette adresse e-mail. Connectez-vous comme d’habitude.',
    already_linked: 'Cette méthode de connexion appartient à un autre compte.',
    invalid_token: 'Ce lien a expiré ou a déjà été utilisé.',
    unauthenticated: 'Connectez-vous d’abord.',
    forbidden: 'Vous n’avez pas l’autorisation de faire cela.',
    reauthenticate: 'Connectez-vous à nouveau pour continuer.',
    second_factor_required: 'Cette connexion exige une deuxième étape. Saisissez un code ou utilisez une clé d’accès.',
    second_factor_missing: 'Une deuxième étape de connexion est nécessaire ici. Configurez-la d’abord.',
    invalid_code: 'Ce code est incorrect, a expiré ou a déjà été utilisé. Saisissez-en un nouveau.',
    too_many: 'Vous ne pouvez pas en ajouter davantage. Supprimez-en d’abord.',
    last_link: 'C’est votre seule méthode de connexion. Ajoutez-en d’abord une autre.',
    user_in_use: 'Ce compte ne peut pas encore être supprimé, car d’autres données y font référence.',
    not_found: 'Cet élément n’existe plus.',
    blocked: 'Ce compte est bloqué.',
    unverified: 'Confirmez d’abord votre adresse e-mail. Nous vous avons envoyé un lien.',
    other: 'La connexion a été refusée.'
  }
}
