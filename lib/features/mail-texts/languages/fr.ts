import type { MailLanguage } from '../mail-language.js'

/** The mails in French. */
export const fr: MailLanguage = {
  language: 'fr',
  direction: 'ltr',
  hello: 'Bonjour,',
  helloName: 'Bonjour {name},',
  copyLink: 'Si le bouton ne fonctionne pas, ouvrez ce lien :',
  lasts: 'Valable {time}.',
  ignore: 'Si vous ne l’avez pas demandé, ignorez cet e-mail.',
  origin: 'Origine :',
  browser: 'Navigateur : {device}',
  unknownBrowser: 'inconnu',
  time: 'Heure : {time}',
  place: 'Lieu : {place}',
  account: 'Votre compte :',
  reason: 'Cet e-mail a été envoyé à {to}, car un compte chez {name} a cette adresse ou quelqu’un l’y a saisie.',
  support: 'Des questions ?',
  kinds: {
    register: {
      subject: 'Terminez votre inscription',
      button: 'Créer votre compte',
      text: 'Ouvrez le lien pour créer votre compte.'
    },
    'verify-email': {
      subject: 'Confirmez votre adresse e-mail',
      button: 'Confirmer l’adresse',
      text: 'Votre compte a cette adresse. Ouvrez le lien pour confirmer qu’elle est à vous, ou pour dire ' +
        'qu’elle ne l’est pas.'
    },
    'reset-password': {
      subject: 'Choisissez un nouveau mot de passe',
      button: 'Choisir un mot de passe',
      text: 'Un nouveau mot de passe a été demandé pour votre compte. Ouvrez le lien pour le choisir.'
    },
    'change-email': {
      subject: 'Confirmez votre nouvelle adresse e-mail',
      button: 'Confirmer l’adresse',
      text: 'Ouvrez le lien pour confirmer que cette adresse est la nouvelle adresse de votre compte.'
    },
    'sign-in': {
      subject: 'Votre lien de connexion',
      button: 'Se connecter',
      text: 'Ouvrez le lien dans le navigateur où vous l’avez demandé, ou saisissez-y le code, s’il y en a un.'
    },
    enrolment: {
      subject: 'Votre code',
      text: 'Ce code configure un second facteur, ou remplace des clés d’accès que vous avez perdues. ' +
        'Si ce n’est pas vous, quelqu’un connaît votre mot de passe : changez-le.'
    },
    exists: {
      subject: 'Vous avez déjà un compte',
      text: 'Quelqu’un a voulu s’inscrire avec votre adresse, qui a déjà un compte. ' +
        'Si c’était vous, connectez-vous. Sinon, il n’y a rien à faire.'
    },
    'unknown-address': {
      subject: 'Vous n’avez pas de compte',
      text: 'Quelqu’un a voulu se connecter, ou choisir un nouveau mot de passe, avec votre adresse. ' +
        'Aucun compte ne l’a. Si ce n’était pas vous, il n’y a rien à faire.'
    },
    'password-changed': {
      subject: 'Votre mot de passe a été changé',
      text: 'Votre compte a un nouveau mot de passe. Toutes les autres sessions sont terminées. ' +
        'Si ce n’était pas vous, réinitialisez votre mot de passe tout de suite.'
    },
    'email-proven': {
      subject: 'Votre adresse e-mail a été confirmée',
      text: 'Cette adresse a été confirmée pour la première fois. ' +
        'Les méthodes de connexion ajoutées auparavant ont été supprimées. ' +
        'Si ce n’était pas vous, contactez-nous tout de suite.'
    },
    'email-changed': {
      subject: 'Votre adresse e-mail a été changée',
      text: 'L’adresse e-mail de votre compte a été changée. Si ce n’était pas vous, contactez-nous tout de suite.'
    },
    'email-change-requested': {
      subject: 'Une nouvelle adresse e-mail a été demandée',
      text: 'Votre compte aura une autre adresse e-mail dès qu’elle sera confirmée. ' +
        'Si ce n’était pas vous, changez votre mot de passe.'
    },
    'email-disputed': {
      subject: 'Confirmez à nouveau votre adresse e-mail',
      text: 'Un fournisseur ne garantit plus cette adresse. Connectez-vous et confirmez-la sur la page de votre compte.'
    },
    'identity-linked': {
      subject: 'Une méthode de connexion a été ajoutée',
      text: 'Votre compte a une nouvelle méthode de connexion. ' +
        'Si ce n’était pas vous, supprimez-la et changez votre mot de passe.'
    },
    'identity-unlinked': {
      subject: 'Une méthode de connexion a été supprimée',
      text: 'Une méthode de connexion de votre compte a été supprimée. ' +
        'Si ce n’était pas vous, changez votre mot de passe.'
    },
    'factor-added': {
      subject: 'Un second facteur a été ajouté',
      text: 'Votre compte a un nouveau second facteur ou une nouvelle clé d’accès. ' +
        'Si ce n’était pas vous, supprimez-le et changez votre mot de passe.'
    },
    'factor-removed': {
      subject: 'Un second facteur a été supprimé',
      text: 'Un second facteur ou une clé d’accès de votre compte a été supprimé. ' +
        'Si ce n’était pas vous, changez votre mot de passe.'
    },
    'recovery-codes-renewed': {
      subject: 'Vos codes de récupération ont été remplacés',
      text: 'Seuls les nouveaux codes de récupération fonctionnent. ' +
        'Si ce n’était pas vous, changez votre mot de passe et remplacez-les.'
    },
    'recovery-code-used': {
      subject: 'Un code de récupération a été utilisé',
      text: 'Quelqu’un s’est connecté avec un code de récupération. ' +
        'Si ce n’était pas vous, changez votre mot de passe et remplacez les codes.'
    },
    'too-many-codes': {
      subject: 'Quelqu’un essaie des codes pour votre compte',
      text: 'Quelqu’un est arrivé au second facteur et a envoyé de faux codes. ' +
        'Si ce n’était pas vous, changez votre mot de passe.'
    },
    'passkey-cloned': {
      subject: 'Une clé d’accès a été refusée',
      text: 'Il existe peut-être une copie d’une de vos clés d’accès. Supprimez-la et ajoutez-en une nouvelle.'
    },
    'application-connected': {
      subject: 'Une application a été connectée',
      text: 'Une application peut maintenant agir pour vous. ' +
        'Si ce n’était pas vous, déconnectez-la et changez votre mot de passe.'
    },
    'token-replayed': {
      subject: 'Une application connectée a peut-être été copiée',
      text: 'Un ancien jeton d’une application que vous avez connectée a été utilisé. En cas de doute, déconnectez-la.'
    },
    'key-created': {
      subject: 'Une clé d’API a été créée',
      text: 'Votre compte a une nouvelle clé d’API. Si ce n’était pas vous, supprimez-la et changez votre mot de passe.'
    },
    impersonated: {
      subject: 'L’assistance a consulté votre compte',
      text: 'Une personne de notre assistance a vu l’application comme vous la voyez. ' +
        'Elle ne pouvait pas modifier votre compte.'
    },
    'domain-lapsed': {
      subject: 'Un domaine de votre connexion d’entreprise n’est plus prouvé',
      text: 'L’enregistrement DNS qui prouve {domain} manque depuis une semaine. Tant que vous ne l’avez pas ' +
        'remis et fait vérifier, personne ne peut se joindre par votre connexion, et elle n’est exigée de personne.'
    },
    'new-browser': {
      subject: 'Une connexion depuis un nouveau navigateur',
      text: 'Quelqu’un s’est connecté à votre compte depuis un navigateur que nous ne connaissons pas. ' +
        'Si ce n’était pas vous, terminez sa session parmi vos appareils et changez votre mot de passe.'
    }
  }
}
