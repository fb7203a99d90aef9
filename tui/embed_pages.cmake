# SPDX-License-Identifier: GPL-3.0-or-later
# Writes OUT, a C file with the manual pages PAGES (a list of paths): the help
# of the console. cmake -DOUT=... -DPAGES=... -P embed_pages.cmake
set(text "/* Made by tui/embed_pages.cmake from man/. */\n")
string(APPEND text "#include \"tui/page.h\"\n\n")
set(rows "")
set(n 0)
foreach(page IN LISTS PAGES)
  file(READ ${page} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)"
    "\\1\n" bytes "${bytes}")
  string(APPEND text
    "static const unsigned char page_${n}[] = {\n${bytes}0 };\n\n")
  get_filename_component(file ${page} NAME)
  string(REGEX REPLACE "^(.*)\\.([0-9])$" "\\1(\\2)" name ${file})
  string(APPEND rows "\t{ \"${name}\", (const char *)page_${n} },\n")
  math(EXPR n "${n} + 1")
endforeach()
string(APPEND text "const struct page_row page_table[] = {\n${rows}"
  "\t{ NULL, NULL },\n};\n")
file(WRITE ${OUT} "${text}")
