"""The few words that a template brings itself, by language: titles of sections, months, "present".

A language that is not here gets English titles and dates in figures (2026-11); its own titles can
be given in the document (`titles`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Words:
    """present: the end of a position that lasts. months: short, January first; none: figures."""

    document: str
    present: str
    as_of: str
    titles: dict[str, str]
    months: tuple[str, ...] = ()


_ORDER = (
    "summary", "work", "projects", "education", "skills", "certificates", "awards", "publications",
    "volunteer", "languages", "interests", "references",
)  # fmt: skip


def _words(document: str, present: str, as_of: str, titles: str, months: str) -> Words:
    return Words(document, present, as_of, dict(zip(_ORDER, titles.split("|"), strict=True)), tuple(months.split()))


_LANGUAGES: Final = {
    "en": _words(
        "Résumé", "Present", "Data as of",
        "Profile|Experience|Projects|Education|Skills|Certificates|Awards|Publications|Volunteering|Languages|"
        "Interests|References",
        "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec",
    ),
    "de": _words(
        "Lebenslauf", "heute", "Datenstand",
        "Profil|Berufserfahrung|Projekte|Ausbildung|Kenntnisse|Zertifikate|Auszeichnungen|Veröffentlichungen|Ehrenamt|"
        "Sprachen|Interessen|Referenzen",
        "Jan. Feb. März Apr. Mai Juni Juli Aug. Sept. Okt. Nov. Dez.",
    ),
    "fr": _words(
        "Curriculum vitæ", "aujourd’hui", "Données au",
        "Profil|Expérience|Projets|Formation|Compétences|Certifications|Distinctions|Publications|Bénévolat|Langues|"
        "Centres d’intérêt|Références",
        "janv. févr. mars avr. mai juin juill. août sept. oct. nov. déc.",
    ),
    "es": _words(
        "Currículum vítae", "actualidad", "Datos a fecha de",
        "Perfil|Experiencia|Proyectos|Formación|Competencias|Certificados|Premios|Publicaciones|Voluntariado|Idiomas|"
        "Intereses|Referencias",
        "ene. feb. mar. abr. may. jun. jul. ago. sept. oct. nov. dic.",
    ),
    "it": _words(
        "Curriculum vitae", "oggi", "Dati aggiornati al",
        "Profilo|Esperienza|Progetti|Istruzione|Competenze|Certificati|Premi|Pubblicazioni|Volontariato|Lingue|"
        "Interessi|Referenze",
        "gen feb mar apr mag giu lug ago set ott nov dic",
    ),
    "pt": _words(
        "Currículo", "atual", "Dados de",
        "Perfil|Experiência|Projetos|Formação|Competências|Certificados|Prêmios|Publicações|Voluntariado|Idiomas|"
        "Interesses|Referências",
        "jan. fev. mar. abr. maio jun. jul. ago. set. out. nov. dez.",
    ),
    "nl": _words(
        "Curriculum vitae", "heden", "Gegevens per",
        "Profiel|Werkervaring|Projecten|Opleiding|Vaardigheden|Certificaten|Prijzen|Publicaties|Vrijwilligerswerk|"
        "Talen|Interesses|Referenties",
        "jan feb mrt apr mei jun jul aug sep okt nov dec",
    ),
    "pl": _words(
        "Życiorys", "obecnie", "Dane z dnia",
        "Profil|Doświadczenie|Projekty|Wykształcenie|Umiejętności|Certyfikaty|Nagrody|Publikacje|Wolontariat|Języki|"
        "Zainteresowania|Referencje",
        "sty lut mar kwi maj cze lip sie wrz paź lis gru",
    ),
    "el": _words(
        "Βιογραφικό σημείωμα", "σήμερα", "Δεδομένα της",
        "Προφίλ|Εργασιακή εμπειρία|Έργα|Εκπαίδευση|Δεξιότητες|Πιστοποιήσεις|Διακρίσεις|Δημοσιεύσεις|Εθελοντισμός|"
        "Γλώσσες|Ενδιαφέροντα|Συστάσεις",
        "Ιαν Φεβ Μαρ Απρ Μάι Ιουν Ιουλ Αυγ Σεπ Οκτ Νοε Δεκ",
    ),
    "ru": _words(
        "Резюме", "настоящее время", "Данные на",
        "О себе|Опыт работы|Проекты|Образование|Навыки|Сертификаты|Награды|Публикации|Волонтёрство|Языки|Интересы|"
        "Рекомендации",
        "янв. февр. март апр. май июнь июль авг. сент. окт. нояб. дек.",
    ),
    "uk": _words(
        "Резюме", "дотепер", "Дані на",
        "Про себе|Досвід роботи|Проєкти|Освіта|Навички|Сертифікати|Нагороди|Публікації|Волонтерство|Мови|Інтереси|"
        "Рекомендації",
        "січ. лют. бер. квіт. трав. черв. лип. серп. вер. жовт. лист. груд.",
    ),
}  # fmt: skip
_ENGLISH = _LANGUAGES["en"]
_FIGURES = Words(_ENGLISH.document, _ENGLISH.present, _ENGLISH.as_of, _ENGLISH.titles)


def words_of(language: str) -> Words:
    """Those of a language tag: pt-BR has those of pt."""
    return _LANGUAGES.get(language.partition("-")[0].lower(), _FIGURES)


def date_words(date: str, words: Words) -> str:
    """2026-11-19 and 2026-11 become Nov 2026, 2026 stays."""
    year, _, rest = date.partition("-")
    if not rest or not words.months:
        return date[:7]
    return f"{words.months[int(rest[:2]) - 1]} {year}"
