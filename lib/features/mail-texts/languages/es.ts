import type { MailLanguage } from '../mail-language.js'

/** The mails in Spanish. */
export const es: MailLanguage = {
  language: 'es',
  direction: 'ltr',
  hello: 'Hola:',
  helloName: 'Hola, {name}:',
  copyLink: 'Si el botón no funciona, abre este enlace:',
  lasts: 'Es válido durante {time}.',
  ignore: 'Si no lo has pedido, ignora este correo.',
  origin: 'Origen:',
  browser: 'Navegador: {device}',
  unknownBrowser: 'desconocido',
  time: 'Hora: {time}',
  place: 'Lugar: {place}',
  account: 'Tu cuenta:',
  reason: 'Este correo se envió a {to} porque una cuenta de {name} tiene esta dirección o alguien la introdujo allí.',
  support: '¿Preguntas?',
  kinds: {
    register: {
      subject: 'Termina tu registro',
      button: 'Crear tu cuenta',
      text: 'Abre el enlace para crear tu cuenta.'
    },
    'verify-email': {
      subject: 'Confirma tu correo electrónico',
      button: 'Confirmar la dirección',
      text: 'Tu cuenta tiene esta dirección. Abre el enlace para confirmar que es tuya, o para decir que no lo es.'
    },
    'reset-password': {
      subject: 'Elige una contraseña nueva',
      button: 'Elegir una contraseña',
      text: 'Se ha pedido una contraseña nueva para tu cuenta. Abre el enlace para elegirla.'
    },
    'change-email': {
      subject: 'Confirma tu nuevo correo electrónico',
      button: 'Confirmar la dirección',
      text: 'Abre el enlace para confirmar que esta es la nueva dirección de tu cuenta.'
    },
    'sign-in': {
      subject: 'Tu enlace para iniciar sesión',
      button: 'Iniciar sesión',
      text: 'Abre el enlace en el navegador en el que lo pediste, o escribe allí el código, si hay uno.'
    },
    enrolment: {
      subject: 'Tu código',
      text: 'Este código configura un segundo factor, o sustituye llaves de acceso que has perdido. ' +
        'Si no eres tú, alguien conoce tu contraseña: cámbiala.'
    },
    exists: {
      subject: 'Ya tienes una cuenta',
      text: 'Alguien ha intentado registrarse con tu dirección, que ya tiene una cuenta. ' +
        'Si has sido tú, inicia sesión. Si no, no hay nada que hacer.'
    },
    'unknown-address': {
      subject: 'No tienes ninguna cuenta',
      text: 'Alguien ha querido iniciar sesión, o elegir una contraseña nueva, con tu dirección. ' +
        'Ninguna cuenta la tiene. Si no has sido tú, no hay nada que hacer.'
    },
    'password-changed': {
      subject: 'Se ha cambiado tu contraseña',
      text: 'Tu cuenta tiene una contraseña nueva. Todas las demás sesiones se han cerrado. ' +
        'Si no has sido tú, restablece tu contraseña ahora mismo.'
    },
    'email-proven': {
      subject: 'Se ha confirmado tu correo electrónico',
      text: 'Esta dirección se ha confirmado por primera vez. ' +
        'Se han eliminado los métodos de acceso que se añadieron antes. ' +
        'Si no has sido tú, contacta con nosotros ahora mismo.'
    },
    'email-changed': {
      subject: 'Se ha cambiado tu correo electrónico',
      text: 'Se ha cambiado el correo electrónico de tu cuenta. Si no has sido tú, contacta con nosotros ahora mismo.'
    },
    'email-change-requested': {
      subject: 'Se ha pedido un correo electrónico nuevo',
      text: 'Tu cuenta tendrá otro correo electrónico cuando se confirme. Si no has sido tú, cambia tu contraseña.'
    },
    'email-disputed': {
      subject: 'Vuelve a confirmar tu correo electrónico',
      text: 'Un proveedor ya no responde por esta dirección. Inicia sesión y confírmala en la página de tu cuenta.'
    },
    'identity-linked': {
      subject: 'Se ha añadido un método de acceso',
      text: 'Tu cuenta tiene un método de acceso nuevo. Si no has sido tú, elimínalo y cambia tu contraseña.'
    },
    'identity-unlinked': {
      subject: 'Se ha eliminado un método de acceso',
      text: 'Se ha eliminado un método de acceso de tu cuenta. Si no has sido tú, cambia tu contraseña.'
    },
    'factor-added': {
      subject: 'Se ha añadido un segundo factor',
      text: 'Tu cuenta tiene un segundo factor o una llave de acceso nueva. ' +
        'Si no has sido tú, elimínalo y cambia tu contraseña.'
    },
    'factor-removed': {
      subject: 'Se ha eliminado un segundo factor',
      text: 'Se ha eliminado un segundo factor o una llave de acceso de tu cuenta. ' +
        'Si no has sido tú, cambia tu contraseña.'
    },
    'recovery-codes-renewed': {
      subject: 'Se han sustituido tus códigos de recuperación',
      text: 'Solo valen los códigos de recuperación nuevos. Si no has sido tú, cambia tu contraseña y sustitúyelos.'
    },
    'recovery-code-used': {
      subject: 'Se ha usado un código de recuperación',
      text: 'Alguien ha iniciado sesión con un código de recuperación. ' +
        'Si no has sido tú, cambia tu contraseña y sustituye los códigos.'
    },
    'too-many-codes': {
      subject: 'Alguien prueba códigos para tu cuenta',
      text: 'Alguien ha llegado hasta el segundo factor y ha enviado códigos incorrectos. ' +
        'Si no has sido tú, cambia tu contraseña.'
    },
    'passkey-cloned': {
      subject: 'Se ha rechazado una llave de acceso',
      text: 'Puede que haya una copia de una de tus llaves de acceso. Elimínala y añade una nueva.'
    },
    'application-connected': {
      subject: 'Se ha conectado una aplicación',
      text: 'Una aplicación puede actuar ahora por ti. Si no has sido tú, desconéctala y cambia tu contraseña.'
    },
    'token-replayed': {
      subject: 'Puede que se haya copiado una aplicación conectada',
      text: 'Se ha usado un token antiguo de una aplicación que has conectado. En caso de duda, desconéctala.'
    },
    'key-created': {
      subject: 'Se ha creado una clave de API',
      text: 'Tu cuenta tiene una clave de API nueva. Si no has sido tú, elimínala y cambia tu contraseña.'
    },
    impersonated: {
      subject: 'El soporte ha visto tu cuenta',
      text: 'Una persona de nuestro soporte ha visto la aplicación como la ves tú. No podía cambiar tu cuenta.'
    },
    'domain-lapsed': {
      subject: 'Un dominio de tu conexión de acceso ya no está demostrado',
      text: 'El registro DNS que demuestra {domain} falta desde hace una semana. Hasta que lo vuelvas a añadir y lo ' +
        'hagas comprobar, nadie puede unirse por tu conexión, y no se exige a nadie.'
    },
    'new-browser': {
      subject: 'Un inicio de sesión en un navegador nuevo',
      text: 'Alguien ha iniciado sesión en tu cuenta en un navegador que no conocemos. ' +
        'Si no has sido tú, cierra su sesión entre tus dispositivos y cambia tu contraseña.'
    }
  }
}
