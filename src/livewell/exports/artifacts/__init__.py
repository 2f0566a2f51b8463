"""Where the files of exports are kept: a folder, or an S3-compatible store.

    writing ──every byte on the disk──▶ there ──delete──▶ gone
       └──aborted, or the writer died──▶ gone

A file has its final name only when all of it is there, is never overwritten, and is read in bounded
pieces. Nothing that a store raises contains a path, a bucket, an address or a word of a library.

store        what a store is, and how it fails
paths        what the path of a file looks like; nothing else is a path
folder       files in a folder of this machine
draft        a file of the folder before it has its name
threads      calls that block, under a deadline
s3           objects of an S3-compatible store
s3_address   bucket, endpoint, region and credentials: where the store is, and who we are there
s3_failures  which failure of ours an answer of S3 is
s3_links     links of S3 that say what the file is called
probe        write, read, refuse to overwrite, delete: what the doctor asks of a store
open         the store that the settings ask for
links        links of our own, signed, for files that the server hands out
link_keys    the keys of these links: from the settings, or kept in the folder
"""
