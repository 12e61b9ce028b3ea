/* Each node chooses its operation, writes its text, and knows its list. */
#include "random_chain.h"

#include "soak/dice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum chain_op {
    OP_FILES, /* an input; a: its number, b: how its files are named */
    OP_TEMPLATE,
    OP_RANGE,
    OP_TAKE,
    OP_SKIP,
    OP_REPEAT,
    OP_SHARD,
    OP_CONSTANT,
    OP_WHERE,
    OP_CACHE,
    OP_SAME, /* a decorator that gives what it reads */
    OP_REGROUP,
    OP_WINDOWS,
    OP_SHUFFLE,
    OP_CHAIN,
    OP_INTERLEAVE,
    OP_ZIP,
    OP_MIX,
    OP_MERGE
} chain_op;

struct chain_node {
    chain_op op;
    int a, b, c;
    char text[512]; /* of the operation itself */
    int n;
    chain_node *child[CHAIN_CHILDREN];
};

static const char *const first_field[] = {"line", "label", "value"};

/* From lines to the chain's fields. */
static const char *const columns[] = {"", " | columns:label=int32,x=float32*3",
                                      " | columns:value=int64,_*3"};

/* ---- what it is ---- */

static void choose_files(const chain *made, chain_node *node)
{
    const input *from = &made->input[node->a];
    char files[64], text[256];
    node->b = below(3);
    if (node->op == OP_TEMPLATE) {
        input_text(from, "{}", text, sizeof(text));
        node->b = between(1, 4); /* cycle */
        node->c = between(1, 3); /* block */
        snprintf(node->text, sizeof(node->text),
                 "files:i%d-*.rec | interleave:(%s%s),cycle=%d,block=%d,"
                 "ahead=%d",
                 node->a, text, columns[made->fields], node->b, node->c,
                 below(3));
        return;
    }
    if (node->b == 0)
        snprintf(files, sizeof(files), "i%d-*.rec", node->a);
    else if (node->b == 1)
        snprintf(files, sizeof(files), "@i%d.list", node->a);
    else
        snprintf(files, sizeof(files), "i%d-0.rec", node->a);
    input_text(from, files, text, sizeof(text));
    snprintf(node->text, sizeof(node->text), "%s%s", text,
             columns[made->fields]);
}

static void choose_leaf(const chain *made, chain_node *node)
{
    node->a = below(INPUTS);
    node->op = once_in(5) ? OP_TEMPLATE : OP_FILES;
    if (made->fields == CHAIN_VALUES && once_in(3)) {
        node->op = OP_RANGE;
        node->a = between(0, 50);
        node->b = between(0, 30);
        node->c = between(1, 4);
        snprintf(node->text, sizeof(node->text), "range:%d,%d,%d", node->a,
                 node->a + node->b, node->c);
        return;
    }
    choose_files(made, node);
}

static void choose_same(const chain *made, chain_node *node)
{
    static const char *const same[] = {"drop_behind", "mix", "chain", "zip",
                                       "interleave"};
    static const char *const mapped[] = {
        "select:line",
        "cast:label=int64,x=float64,label=int32,x=float32 | reshape:x=3x1,x=3",
        "reshape:value=1,value=scalar | cast:value=float64,value=int64"};
    switch (below(4)) {
    case 0:
        snprintf(node->text, sizeof(node->text), "%s", mapped[made->fields]);
        break;
    case 1:
        snprintf(node->text, sizeof(node->text), "%s", same[below(5)]);
        break;
    default:
        snprintf(node->text, sizeof(node->text), "prefetch:%s,threads=%d",
                 once_in(3) ? "auto"
                 : below(2) ? "2"
                            : "7",
                 between(1, 3));
    }
}

static void choose_shuffle(chain_node *node)
{
    char seed[32] = "";
    if (once_in(2))
        snprintf(seed, sizeof(seed), ",seed=%d", below(9));
    switch (below(4)) {
    case 0:
        snprintf(node->text, sizeof(node->text), "shuffle:%d%s", between(1, 20),
                 seed);
        break;
    case 1:
        snprintf(node->text, sizeof(node->text), "shuffle:block=%d%s",
                 between(1, 9), seed);
        break;
    case 2:
        snprintf(node->text, sizeof(node->text), "shuffle:files%s", seed);
        break;
    default:
        snprintf(node->text, sizeof(node->text), "shuffle%s%s",
                 *seed ? ":" : "", *seed ? seed + 1 : "");
    }
    if (*seed && once_in(3))
        strcat(node->text, ",each_epoch=0");
}

/* How lines are put side by side. */
static const char *group_of_lines(const chain *made)
{
    if (made->fields != CHAIN_LINES)
        return "";
    return once_in(2) ? ",ragged=line" : ",pad=0";
}

static void choose_number(chain_node *node, const char *name, int low, int high)
{
    node->a = between(low, high);
    snprintf(node->text, sizeof(node->text), "%s:%d", name, node->a);
}

static bool is_vain(const chain *made, const chain_node *where);

static void choose_over_one(const chain *made, chain_node *node)
{
    node->op = (chain_op)between(OP_TAKE, OP_SHUFFLE);
    node->b = below(2);
    switch (node->op) {
    case OP_TAKE:
        choose_number(node, "take", -1, 30);
        break;
    case OP_SKIP:
        choose_number(node, "skip", once_in(20) ? -1 : 0, 9);
        break;
    case OP_REPEAT:
        choose_number(node, "repeat", once_in(4) ? -1 : 1, 3);
        node->a = node->a == 0 ? 1 : node->a;
        snprintf(node->text, sizeof(node->text), "repeat:%d", node->a);
        break;
    case OP_SHARD:
        node->a = between(1, 3);
        node->b = below(node->a);
        snprintf(node->text, sizeof(node->text), "shard:%d,%d", node->a,
                 node->b);
        break;
    case OP_CONSTANT:
        if (once_in(3)) {
            choose_number(node, "constant", -1, 12);
            break;
        }
        /* fall through */
    case OP_WHERE:
        node->op = OP_WHERE;
        node->a = between(1000, 1010);
        if (made->fields == CHAIN_LINES || is_vain(made, node))
            choose_same(made, node);
        else
            snprintf(node->text, sizeof(node->text), "where:%s=!(%d..%d)",
                     first_field[made->fields], node->a, node->a + 3);
        if (strncmp(node->text, "where", 5) != 0)
            node->op = OP_SAME;
        break;
    case OP_CACHE:
        snprintf(node->text, sizeof(node->text), "cache%s",
                 node->b    ? ""
                 : below(2) ? ":1"
                            : ":700");
        break;
    case OP_REGROUP:
        node->a = between(1, 6);
        snprintf(node->text, sizeof(node->text),
                 "batch:%d%s,drop_last=%d | unbatch", node->a,
                 group_of_lines(made), node->b);
        break;
    case OP_WINDOWS:
        node->a = between(1, 4);
        node->c = between(1, 4);
        snprintf(node->text, sizeof(node->text),
                 "window:%d,%d%s,drop_last=%d | unbatch", node->a, node->c,
                 group_of_lines(made), node->b);
        break;
    case OP_SHUFFLE:
        choose_shuffle(node);
        break;
    default:
        choose_same(made, node);
    }
}

static void choose_over_several(chain *made, chain_node *node)
{
    static const char *const selected[] = {"line=a_line", "label=a_label,x=b_x",
                                           "value=a_value"};
    static const char *const ends[] = {"stop", "drop", "repeat"};
    node->op = (chain_op)between(OP_CHAIN, once_in(8) ? OP_MERGE : OP_MIX);
    node->a = between(1, 3);
    node->b = between(1, 3);
    switch (node->op) {
    case OP_INTERLEAVE:
        snprintf(node->text, sizeof(node->text), "interleave:cycle=%d,block=%d",
                 node->a, node->b);
        break;
    case OP_ZIP:
        snprintf(node->text, sizeof(node->text),
                 "zip:prefix=(a_,b_%s),align=%s | select:%s",
                 node->n > 2 ? ",c_" : "", once_in(5) ? "1" : "0",
                 selected[made->fields]);
        node->a = strstr(node->text, "=1 ") != NULL;
        break;
    case OP_MIX:
        snprintf(node->text, sizeof(node->text), "mix:%seven=%d,on_end=%s",
                 node->n == 2 ? "2,1," : "", below(2), ends[below(3)]);
        break;
    case OP_MERGE:
        snprintf(node->text, sizeof(node->text), "merge:buffer=%d", node->a);
        made->is_unordered = true;
        break;
    default:
        snprintf(node->text, sizeof(node->text), "chain");
    }
}

static chain_node *make_node(chain *made, int depth)
{
    chain_node *node = calloc(1, sizeof(*node));
    chain_require(node != NULL, "no memory");
    if (depth == 0 || once_in(8)) {
        choose_leaf(made, node);
        return node;
    }
    node->n = once_in(4) ? between(2, CHAIN_CHILDREN) : 1;
    for (int i = 0; i < node->n; i++)
        node->child[i] = make_node(made, i > 0 ? below(depth) : depth - 1);
    if (node->n > 1)
        choose_over_several(made, node);
    else
        choose_over_one(made, node);
    return node;
}

static void free_node(chain_node *node)
{
    for (int i = 0; i < node->n; i++)
        free_node(node->child[i]);
    free(node);
}

/* ---- its text ---- */

static void add_text(chain *made, const char *text)
{
    size_t used = strlen(made->text);
    chain_require(used + strlen(text) < sizeof(made->text), "a long chain");
    strcpy(made->text + used, text);
}

static void add_node(chain *made, const chain_node *node)
{
    for (int i = 0; i < node->n; i++) {
        if (node->n > 1)
            add_text(made, "(");
        add_node(made, node->child[i]);
        if (node->n > 1)
            add_text(made, ") ");
    }
    if (node->n > 0)
        add_text(made, node->n > 1 ? "| " : " | ");
    add_text(made, node->text);
}

/* What may come last: groups, or what leaves files or loses the order. */
static void add_last(chain *made)
{
    char text[128];
    const char *lines = group_of_lines(made);
    const char *field = made->fields == CHAIN_NUMBERS ? "x" : "line";
    made->is_grouped = true;
    switch (below(8)) {
    case 0:
        snprintf(text, sizeof(text), " | batch:%d%s,drop_last=%d",
                 between(1, 7), lines, below(2));
        break;
    case 1:
        snprintf(text, sizeof(text), " | window:%d,%d,stride=%d%s",
                 between(1, 5), between(1, 5), between(1, 3), lines);
        break;
    case 2:
        if (made->fields == CHAIN_VALUES)
            return;
        snprintf(text, sizeof(text), " | bucket:%s,(2,15),batch=(2,%d,4)",
                 field, between(1, 5));
        break;
    case 3:
        made->is_grouped = false;
        made->keeps_files = true;
        snprintf(text, sizeof(text), " | cache:dir=kept");
        break;
    case 4:
        made->is_grouped = false;
        if (!once_in(4))
            return;
        made->is_unordered = true;
        snprintf(text, sizeof(text), " | prefetch:4,threads=2,unordered=1");
        break;
    default:
        made->is_grouped = false;
        return;
    }
    add_text(made, text);
}

void chain_make(chain *made)
{
    made->fields = (chain_fields)below(CHAIN_FIELDS);
    made->is_grouped = made->is_unordered = made->keeps_files = false;
    for (int i = 0; i < INPUTS; i++)
        input_make(&made->input[i], i);
    made->text[0] = 0;
    made->root = make_node(made, between(1, 6));
    add_node(made, made->root);
    add_last(made);
}

void chain_free(chain *made)
{
    free_node(made->root);
}

void chain_replace_files(chain *made)
{
    for (int i = 0; i < INPUTS; i++)
        input_replace(&made->input[i], i);
}

void chain_damage_files(chain *made)
{
    for (int i = 0; i < INPUTS; i++)
        input_damage(&made->input[i], i);
}

/* ---- what it gives ---- */

static bool expect(const chain *made, const chain_node *node, int epoch,
                   chain_list *out);

static chain_list *new_list(void)
{
    chain_list *list = calloc(1, sizeof(*list));
    chain_require(list != NULL, "no memory");
    return list;
}

static void append(chain_list *out, chain_item item)
{
    if (out->n < CHAIN_ITEMS)
        out->item[out->n++] = item;
    else
        out->is_cut = true;
}

static void append_file(const chain *made, int i, int f, chain_list *out)
{
    const input *from = &made->input[i];
    for (int r = 0; r < from->n[f]; r++)
        append(out, (chain_item){input_id(i, f, r),
                                 from->is_bad[f][r] ||
                                     (made->fields != CHAIN_LINES &&
                                      from->has_no_columns[f][r])});
}

/* tf.data's order of `n` lists: an ended one leaves its turn, and the next is
   begun when that comes again. */
static void interleave(const chain_list *const list[], int n, int cycle,
                       int block, chain_list *out)
{
    int slot[8], at[8], next = 0, open = 0;
    for (int i = 0; i < cycle; i++)
        slot[i] = -1;
    for (int i = 0; next < n || open > 0; i = (i + 1) % cycle) {
        if (slot[i] < 0 && next < n) {
            slot[i] = next++;
            at[i] = 0;
            open++;
        }
        for (int k = 0; slot[i] >= 0 && k < block && !out->is_cut; k++)
            if (at[i] < list[slot[i]]->n) {
                append(out, list[slot[i]]->item[at[i]++]);
            } else {
                out->is_cut |= list[slot[i]]->is_cut;
                slot[i] = -1;
                open--;
            }
        if (out->is_cut)
            return;
    }
}

static void expect_template(const chain *made, const chain_node *node,
                            chain_list *out)
{
    chain_list *list[INPUT_FILES];
    int n = made->input[node->a].nfiles;
    for (int f = 0; f < n; f++) {
        list[f] = new_list();
        append_file(made, node->a, f, list[f]);
    }
    interleave((const chain_list *const *)list, n, node->b, node->c, out);
    for (int f = 0; f < n; f++)
        free(list[f]);
}

static bool expect_repeat(const chain *made, const chain_node *node, int epoch,
                          chain_list *out)
{
    chain_list *list = new_list();
    bool is_known = true;
    int times = node->a < 0 ? 1 : node->a;
    for (int k = 0; is_known && !out->is_cut; k++) {
        if (node->a >= 0 && k == node->a)
            break;
        list->n = 0;
        is_known = expect(made, node->child[0], epoch * times + k, list);
        for (int i = 0; i < list->n; i++)
            append(out, list->item[i]);
        out->is_cut |= list->is_cut;
        if (node->a < 0 && list->n == 0)
            break;
    }
    free(list);
    return is_known;
}

static bool has_bad(const chain_list *list)
{
    for (int i = 0; i < list->n; i++)
        if (list->item[i].is_bad)
            return true;
    return false;
}

static void regroup(const chain_list *in, int size, int shift, bool drops,
                    chain_list *out)
{
    for (int begin = 0; begin < in->n; begin += shift)
        for (int i = begin; i < begin + size && i < in->n; i++)
            if (!drops || begin + size <= in->n)
                append(out, in->item[i]);
}

static bool is_kept(const chain_node *node, const chain_item *item)
{
    return item->is_bad || item->id < node->a || item->id > node->a + 3;
}

/* Whether a reader below may go on for ever. */
static bool is_endless(const chain_node *node)
{
    if ((node->op == OP_REPEAT || node->op == OP_CONSTANT) && node->a == -1)
        return true;
    for (int i = 0; i < node->n; i++)
        if (is_endless(node->child[i]))
            return true;
    return false;
}

/* Whether it would look for ever, as none of an endless list is kept; or might,
   as nobody knows what is kept of one. */
static bool is_vain(const chain *made, const chain_node *where)
{
    chain_list *list = new_list();
    bool is_known = expect(made, where->child[0], 0, list);
    bool is_vain = is_known ? list->is_cut : is_endless(where->child[0]);
    for (int i = 0; is_known && i < list->n; i++)
        is_vain &= !is_kept(where, &list->item[i]);
    free(list);
    return is_vain;
}

/* Over one input. */
static bool apply(const chain_node *node, const chain_list *in, chain_list *out)
{
    int begin = 0, end = in->n, step = 1;
    out->is_cut = in->is_cut;
    switch (node->op) {
    case OP_TAKE:
        end = node->a >= 0 && node->a < in->n ? node->a : in->n;
        out->is_cut = in->is_cut && end == in->n;
        break;
    case OP_SKIP:
        begin = node->a < 0 ? in->n : node->a;
        out->is_cut = in->is_cut && node->a >= 0;
        break;
    case OP_SHARD:
        begin = node->b;
        step = node->a;
        break;
    case OP_REGROUP:
        regroup(in, node->a, node->a, node->b, out);
        return !has_bad(in);
    case OP_WINDOWS:
        regroup(in, node->a, node->c, node->b, out);
        return !has_bad(in);
    case OP_CONSTANT:
        while (begin < in->n && in->item[begin].is_bad)
            begin++;
        out->is_cut = false;
        for (int k = 0; begin < in->n && k != node->a && !out->is_cut; k++)
            append(out, in->item[begin]);
        return true;
    default:
        break;
    }
    for (int i = begin; i < end; i += step)
        if (node->op != OP_WHERE || is_kept(node, &in->item[i]))
            append(out, in->item[i]);
    return true;
}

static void zip(const chain_list *const list[], int n, chain_list *out)
{
    for (int i = 0;; i++) {
        chain_item item = {list[0]->item[i].id, false};
        for (int k = 0; k < n; k++) {
            if (i >= list[k]->n) {
                out->is_cut = list[k]->is_cut;
                return;
            }
            item.is_bad |= list[k]->item[i].is_bad;
        }
        append(out, item);
        if (out->is_cut)
            return;
    }
}

static bool combine(const chain_node *node, const chain_list *const list[],
                    chain_list *out)
{
    switch (node->op) {
    case OP_CHAIN:
        for (int k = 0; k < node->n && !out->is_cut; k++) {
            for (int i = 0; i < list[k]->n; i++)
                append(out, list[k]->item[i]);
            out->is_cut |= list[k]->is_cut;
        }
        return true;
    case OP_INTERLEAVE:
        interleave(list, node->n, node->a, node->b, out);
        return true;
    case OP_ZIP:
        zip(list, node->n, out);
        return node->a == 0;
    default:
        return false;
    }
}

static bool expect(const chain *made, const chain_node *node, int epoch,
                   chain_list *out)
{
    chain_list *list[CHAIN_CHILDREN];
    bool is_known = node->op != OP_SHUFFLE;
    if (node->op == OP_REPEAT)
        return expect_repeat(made, node, epoch, out);
    if (node->op == OP_CACHE || node->op == OP_CONSTANT)
        epoch = 0;
    for (int i = 0; i < node->n; i++) {
        list[i] = new_list();
        is_known &= expect(made, node->child[i], epoch, list[i]);
    }
    if (node->op == OP_TEMPLATE)
        expect_template(made, node, out);
    else if (node->op == OP_FILES)
        for (int f = 0; f < (node->b == 2 ? 1 : made->input[node->a].nfiles);
             f++)
            append_file(made, node->a, f, out);
    else if (node->op == OP_RANGE)
        for (int i = 0; i < node->b; i += node->c)
            append(out, (chain_item){node->a + i, false});
    else if (is_known)
        is_known = node->n == 1
                       ? apply(node, list[0], out)
                       : combine(node, (const chain_list *const *)list, out);
    for (int i = 0; i < node->n; i++)
        free(list[i]);
    return is_known;
}

bool chain_expect(const chain *made, int epoch, chain_list *out)
{
    out->n = 0;
    out->is_cut = false;
    if (made->is_grouped || made->is_unordered)
        return false;
    return expect(made, made->root, made->keeps_files ? 0 : epoch, out);
}
