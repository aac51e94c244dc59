from windtunnel.report.markup import Cell, Column, Html, join, render_table, tag


def test_plain_text_is_escaped_and_markup_passes():
    assert tag("p", "a < b & c", tag("b", "<i>")) == "<p>a &lt; b &amp; c<b>&lt;i&gt;</b></p>"
    assert join(["<", Html("<br>")]) == "&lt;<br>"


def test_attributes_are_escaped_and_empty_ones_left_out():
    made = tag("a", "x", class_='"><script>', data_key="k", title=None, hidden=False, open=True)
    assert made == '<a class="&quot;&gt;&lt;script&gt;" data-key="k" open>x</a>'


def test_a_void_element_has_no_end():
    assert tag("input", type="search") == '<input type="search">'


def test_numbers_sort_by_value_and_unmeasured_ones_carry_none():
    columns = [Column("Name"), Column("Speed", numeric=True)]
    table = render_table(
        columns, [[Cell("a"), Cell("1.2 k", 1234.5)], [Cell("b"), Cell("–")]], caption="c", ident="t"
    )
    assert '<td class="number" data-value="1234.5">1.2 k</td>' in table
    assert '<td class="number">–</td>' in table
    assert '<td data-value="a">a</td>' in table
    assert table.count('<th scope="col"') == 2
    assert table.count("<button") == 2


def test_a_table_without_an_id_has_no_buttons():
    assert "<button" not in render_table([Column("Name")], [[Cell("a")]], caption="c")
