# SPDX-License-Identifier: GPL-2.0-or-later
earshot_unit_test(url_table earshot-urls)
earshot_unit_test(docroot earshot-urls)
earshot_unit_test(rules earshot-rules)
earshot_unit_test(rules_affinity earshot-rules)
earshot_unit_test(rates earshot-peers)
earshot_unit_test(directory earshot-peers)
earshot_unit_test(downloads earshot-peers)
earshot_unit_test(resume_heads earshot-resume)
