/* params.c: parameters from text and from option structs. */
#include "core/op.h"
#include "test.h"

typedef struct {
    size_t size;
    int64_t i, flag;
    double f;
    wk_scalar scalar;
    int64_t pair[2];
    wk_list list;
    double pairf[2];
    int64_t choice, dtype;
} params;

#define AT(field) offsetof(params, field)
static const wk_op op = {
    .name = "sample",
    .params = WK_PARAM_LIST(
        {"i", WK_P_INT, AT(i), "-3", NULL, 0}, {"flag", WK_P_BOOL, AT(flag), "1", NULL, 0},
        {"f", WK_P_FLOAT, AT(f), "0.5", NULL, 0}, {"scalar", WK_P_SCALAR, AT(scalar), "2", NULL, 0},
        {"pair", WK_P_INTS, AT(pair), "7", NULL, 2}, {"dims", WK_P_LIST, AT(list), "all", NULL, 0},
        {"pairf", WK_P_FLOATS, AT(pairf), "1.5,2.5", NULL, 2},
        {"choice", WK_P_ENUM, AT(choice), "fast", "accurate|fast|log", 0},
        {"dtype", WK_P_DTYPE, AT(dtype), NULL, NULL, 0}),
};

static _Alignas(16) char buffer[WK_PARAMS_BYTES];
static params *const p = (params *)buffer;
static unsigned seen;

static bool reads(const char *name, const char *text)
{
    wk_status status = wk_params_parse(&op, buffer, name, text, &seen);
    if (status != WK_OK)
        fprintf(stderr, "%s\n", wk_error());
    wk_error_clear();
    return status == WK_OK;
}

static void test_defaults(void)
{
    memset(buffer, 0xAA, sizeof buffer);
    wk_params_defaults(&op, buffer);
    CHECK(p->i == -3 && p->flag == 1 && p->f == 0.5 && p->scalar.f == 2 && p->scalar.i == 2);
    CHECK(p->pair[0] == 7 && p->pair[1] == 7 && p->list.n == 0 && p->pairf[0] == 1.5 && p->pairf[1] == 2.5);
    CHECK(p->choice == 1 && p->dtype == 0);
}

static void test_parse(void)
{
    CHECK(reads("i", "9223372036854775807") && p->i == INT64_MAX);
    CHECK(reads("i", "-9223372036854775808") && p->i == INT64_MIN);
    CHECK(reads("flag", "0") && p->flag == 0);
    CHECK(reads("f", "-1e-3") && p->f == -1e-3);
    CHECK(reads("f", "inf") && isinf(p->f));
    CHECK(reads("f", "nan") && isnan(p->f));
    CHECK(reads("scalar", "9007199254740993") && p->scalar.i == 9007199254740993); /* 2^53 + 1 */
    CHECK(reads("scalar", "1e30") && p->scalar.f == 1e30 && p->scalar.i == INT64_MAX);
    CHECK(reads("scalar", "-2.5") && p->scalar.f == -2.5 && p->scalar.i == -2);
    CHECK(reads("pair", "4") && p->pair[0] == 4 && p->pair[1] == 4);
    CHECK(reads("pair", "4,5") && p->pair[0] == 4 && p->pair[1] == 5);
    CHECK(reads("pairf", "0.25") && p->pairf[0] == 0.25 && p->pairf[1] == 0.25);
    CHECK(reads("dims", "1,-2,3") && p->list.n == 3 && p->list.v[1] == -2);
    CHECK(reads("dim", "5") && p->list.n == 1 && p->list.v[0] == 5); /* dim and dims are one */
    CHECK(reads("dims", "1,2,3,4,5,6,7,8") && p->list.n == 8);
    CHECK(reads("dims", "all") && p->list.n == 0);
    CHECK(reads("dims", "") && p->list.n == 0);
    CHECK(reads("choice", "log") && p->choice == 2);
    CHECK(reads("choice", "accurate") && p->choice == 0);
    CHECK(reads("dtype", "bf16") && p->dtype == WK_BF16);
    CHECK_EQ(seen, 0x1FF);
}

static void test_bad_texts(void)
{
    static const char *const bad[][2] = {
        {"i", ""},
        {"i", "x"},
        {"i", "1.5"},
        {"i", "1,"},
        {"i", "1,2"},
        {"i", "1 "},
        {"i", "9223372036854775808"},
        {"i", "0x10"},
        {"flag", "2"},
        {"flag", "true"},
        {"flag", ""},
        {"f", ""},
        {"f", "1.5x"},
        {"f", "1,"},
        {"f", "1,2"},
        {"scalar", ""},
        {"scalar", "1,"},
        {"scalar", "1.5,"},
        {"scalar", "a"},
        {"pair", ""},
        {"pair", "1,2,3"},
        {"pair", "1,"},
        {"pair", ",1"},
        {"pair", "1,,2"},
        {"pair", "a,b"},
        {"pairf", "1,2,3"},
        {"pairf", "x"},
        {"pairf", ""},
        {"dims", "1,"},
        {"dims", "a"},
        {"dims", "1,2,3,4,5,6,7,8,9"},
        {"choice", "slow"},
        {"choice", ""},
        {"choice", "accurate|fast"},
        {"choice", "fas"},
        {"dtype", "f31"},
        {"dtype", ""},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        unsigned none = 0;
        char word[40];
        snprintf(word, sizeof word, "sample: %s: expected", bad[i][0]);
        wk_status status = wk_params_parse(&op, buffer, bad[i][0], bad[i][1], &none);
        test_check(status == WK_ERR_PARAM && none == 0 && strstr(wk_error(), word), __FILE__, __LINE__,
                   "%s='%s': %s", bad[i][0], bad[i][1], wk_error());
        wk_error_clear();
    }
    CHECK_FAILS(wk_params_parse(&op, buffer, "unknown", "1", &seen), WK_ERR_PARAM,
                "sample: unknown: no such");
    CHECK_FAILS(wk_params_parse(&op, buffer, "", "1", &seen), WK_ERR_PARAM, "no such");
    CHECK_FAILS(wk_params_parse(&op, buffer, "dimss", "1", &seen), WK_ERR_PARAM, "no such");
    CHECK_FAILS(wk_params_complete(&op, 0xFF), WK_ERR_PARAM, "sample: dtype: required");
    CHECK_EQ(wk_params_complete(&op, 0x100), WK_OK);
}

/* Zero fields get the default, whole or word by word; an older caller's struct is shorter. */
static void test_options(void)
{
    const params given = {.size = sizeof given, .f = 4, .pair = {0, 9}, .choice = 2};
    wk_params_from_options(&op, buffer, &given, given.size);
    CHECK(p->i == -3 && p->flag == 1 && p->f == 4 && p->scalar.i == 2 && p->choice == 2 && p->dtype == 0);
    CHECK(p->pair[0] == 7 && p->pair[1] == 9);
    wk_params_from_options(&op, buffer, &given, AT(pair));
    CHECK(p->f == 4 && p->pair[1] == 7 && p->choice == 1);
    wk_params_from_options(&op, buffer, &given, 0);
    CHECK(p->f == 0.5);
    wk_params_from_options(&op, buffer, NULL, 0);
    CHECK(p->f == 0.5 && p->pair[0] == 7);
}

int main(void)
{
    test_defaults();
    test_parse();
    test_bad_texts();
    test_options();
    return test_end();
}
