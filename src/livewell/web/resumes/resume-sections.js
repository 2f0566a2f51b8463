/**
 * The sections of a résumé as the form asks for them: which fields an entry has, in which order.
 * @module resume-sections
 */

/** A field: its name in JSON Resume, its label, and how it is typed. wide: the whole width of the form. */
const line = (name, label, more = {}) => ({ name, label, kind: "line", ...more });
const day = (name, label) => line(name, label, { hint: "2024-05-31, 2024-05 or 2024", half: true });
const prose = (name, label) => ({ name, label, kind: "prose", wide: true });
const list = (name, label) => ({ name, label, kind: "list", wide: true, hint: "one on each line" });

const URL_LINE = line("url", "Link", { type: "url" });
const SPAN = [day("startDate", "From"), day("endDate", "Until")];

export const BASICS = [
  line("name", "Name", { autocomplete: "name" }),
  line("label", "What you are", { placeholder: "Engineer" }),
  line("email", "E-mail", { type: "email", autocomplete: "email" }),
  line("phone", "Phone", { type: "tel", autocomplete: "tel" }),
  line("url", "Website", { type: "url" }),
  line("location.city", "City"),
  line("location.region", "Region"),
  line("location.countryCode", "Country code", { placeholder: "DE", half: true }),
  line("location.postalCode", "Postal code", { half: true }),
  line("location.address", "Address"),
  line("language", "Language of the document", { placeholder: "en", hint: "en, de, pt-BR", half: true, top: true }),
];

/** Sections by their name in JSON Resume, in the order in which they are printed. one: what a single entry is called. */
export const SECTIONS = {
  profiles: { title: "Accounts", one: "account", isFixed: true, fields: [line("network", "Network"), line("username", "Name there"), URL_LINE] },
  summary: { title: "Profile", text: prose("summary", "Summary") },
  work: { title: "Experience", one: "job", fields: [line("position", "Position"), line("name", "Employer"), ...SPAN, line("location", "Place"), URL_LINE, prose("summary", "Summary"), list("highlights", "Highlights")] },
  projects: { title: "Projects", one: "project", fields: [line("name", "Project"), line("entity", "For whom"), ...SPAN, URL_LINE, prose("description", "What it is"), list("highlights", "Highlights"), list("keywords", "Keywords"), list("roles", "Roles")] },
  education: { title: "Education", one: "school", fields: [line("institution", "School"), line("studyType", "Degree"), line("area", "Field"), line("score", "Grade", { half: true }), ...SPAN, URL_LINE, list("courses", "Courses")] },
  skills: { title: "Skills", one: "skill", fields: [line("name", "Skill"), line("level", "Level"), list("keywords", "Keywords")] },
  certificates: { title: "Certificates", one: "certificate", fields: [line("name", "Certificate"), line("issuer", "Issuer"), day("date", "Date"), URL_LINE] },
  awards: { title: "Awards", one: "award", fields: [line("title", "Award"), line("awarder", "From whom"), day("date", "Date"), prose("summary", "For what")] },
  publications: { title: "Publications", one: "publication", fields: [line("name", "Title"), line("publisher", "Publisher"), day("releaseDate", "Date"), URL_LINE, prose("summary", "Summary")] },
  volunteer: { title: "Volunteering", one: "post", fields: [line("position", "Position"), line("organization", "Organisation"), ...SPAN, URL_LINE, prose("summary", "Summary"), list("highlights", "Highlights")] },
  languages: { title: "Languages", one: "language", fields: [line("language", "Language"), line("fluency", "How well")] },
  interests: { title: "Interests", one: "interest", fields: [line("name", "Interest"), list("keywords", "Keywords")] },
  references: { title: "References", one: "reference", fields: [line("name", "Name"), prose("reference", "What they say")] },
};

/** Read a field by its path: location.city. */
export function read(entry, path) {
  return path.split(".").reduce((value, part) => value?.[part], entry);
}

/** Write it; parts that are not there are made. */
export function write(entry, path, value) {
  const parts = path.split(".");
  const last = parts.pop();
  let place = entry;
  for (const part of parts) place = place[part] ??= {};
  place[last] = value;
}

/** Without what nobody filled in. Entries that are wholly empty go, too. */
export function filled(value) {
  if (Array.isArray(value)) return value.map(filled).filter((one) => one !== undefined).length ? value.map(filled).filter((one) => one !== undefined) : undefined;
  if (value && typeof value === "object") {
    const kept = Object.entries(value).map(([name, part]) => [name, filled(part)]).filter(([, part]) => part !== undefined);
    return kept.length ? Object.fromEntries(kept) : undefined;
  }
  return value === "" || value === null ? undefined : value;
}
