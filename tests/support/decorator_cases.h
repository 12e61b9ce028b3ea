/* decorator_cases.h: a text for each form of each decorator of leat. */
#ifndef LEAT_TESTS_DECORATOR_CASES_H
#define LEAT_TESTS_DECORATOR_CASES_H

/*
 * Over samples with `data` (uint8) and `label` (an int32 scalar), for
 * decorator_chain_make: what each gives depends on position and seed alone.
 */
static const char *const decorator_cases[] = {
    "repeat:2",
    "shard:3,1",
    "shuffle:seed=3",
    "shuffle:block=5,seed=3",
    "shuffle:6,seed=3",
    "({}) ({} | take:9) | chain | shuffle:files,seed=3",
    "skip:7",
    "cast:label=int64,data=float32,label=int32,data=uint8",
    "reshape:label=1,data=-1,label=scalar",
    "transform:data,mirror=1,type=UINT8",
    "select:data,label",
    "select:data,old=label,label",
    "batch:4",
    "batch:5,drop_last=1",
    "batch:3,ragged=data",
    "batch:3,pad=0",
    "batch:4 | unbatch",
    "batch:5,drop_last=1 | unbatch",
    "batch:4,ragged=data | unbatch",
    "mix",
    "mix:1,even=1,on_end=repeat",
    "take:20",
    "cache",
    "cache:5k",
    "drop_behind",
    "prefetch:3",
    "prefetch:16,threads=3",
    "take:0",
    "window:3,2",
    "window:2,3,stride=2",
    "window:5,1,drop_last=1",
    "bucket:data,(2,4),batch=(2,3,4)",
    "bucket:data,4,batch=5,drop_last=1",
    "chain",
    "constant:20",
    "constant",
    "zip",
    "zip:align=0",
    "where:label=!(1003..1005,1010)",
};

#endif
