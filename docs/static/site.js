// What the theme leaves out: levels of headings, names of its two sidebars, and keys that scroll code and tables.
for (const caption of document.querySelectorAll('.caption[role="heading"]')) caption.setAttribute("aria-level", "2");
document.querySelector(".sidebar-drawer")?.setAttribute("aria-label", "Pages");
document.querySelector(".toc-drawer")?.setAttribute("aria-label", "On this page");
for (const wide of document.querySelectorAll("pre, .table-wrapper")) wide.tabIndex = 0;
