// The tables of names. stubgen_compiled_test compares them with the compiler's headers, and fails if a name is missing.
#include "c_names.h"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string>

#include "lrpc/stubgen/layout/model.h"

namespace lrpc::stubgen {
namespace {

/// The words of a text, which blanks and line ends separate.
NameSet words(const char* text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

constexpr const char* kKeywords = R"(
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class co_await
co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do
double dynamic_cast else enum explicit export extern false float for friend goto if import inline int long module
mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
requires return short signed sizeof static static_assert static_cast struct switch template this thread_local throw true
try typedef typeid typename typeof union unsigned using virtual void volatile wchar_t while xor xor_eq
)";

// Macros of the C library that <string>, <chrono>, <mutex> and the like include; a header that uses std::string cannot
// avoid them.
constexpr const char* kMacros = R"(
ADJ_ESTERROR ADJ_FREQUENCY ADJ_MAXERROR ADJ_MICRO ADJ_NANO ADJ_OFFSET ADJ_OFFSET_SINGLESHOT ADJ_OFFSET_SS_READ
ADJ_SETOFFSET ADJ_STATUS ADJ_TAI ADJ_TICK ADJ_TIMECONST AIO_PRIO_DELTA_MAX ATOMIC_BOOL_LOCK_FREE
ATOMIC_CHAR16_T_LOCK_FREE ATOMIC_CHAR32_T_LOCK_FREE ATOMIC_CHAR8_T_LOCK_FREE ATOMIC_CHAR_LOCK_FREE ATOMIC_FLAG_INIT
ATOMIC_INT_LOCK_FREE ATOMIC_LLONG_LOCK_FREE ATOMIC_LONG_LOCK_FREE ATOMIC_POINTER_LOCK_FREE ATOMIC_SHORT_LOCK_FREE
ATOMIC_VAR_INIT ATOMIC_WCHAR_T_LOCK_FREE BC_BASE_MAX BC_DIM_MAX BC_SCALE_MAX BC_STRING_MAX BIG_ENDIAN BOOL_MAX
BOOL_WIDTH BUFSIZ BYTE_ORDER CHARCLASS_NAME_MAX CHAR_BIT CHAR_MAX CHAR_MIN CHAR_WIDTH CLOCKS_PER_SEC CLOCK_BOOTTIME
CLOCK_BOOTTIME_ALARM CLOCK_MONOTONIC CLOCK_MONOTONIC_COARSE CLOCK_MONOTONIC_RAW CLOCK_PROCESS_CPUTIME_ID CLOCK_REALTIME
CLOCK_REALTIME_ALARM CLOCK_REALTIME_COARSE CLOCK_TAI CLOCK_THREAD_CPUTIME_ID CLONE_CHILD_CLEARTID CLONE_CHILD_SETTID
CLONE_DETACHED CLONE_FILES CLONE_FS CLONE_IO CLONE_NEWCGROUP CLONE_NEWIPC CLONE_NEWNET CLONE_NEWNS CLONE_NEWPID
CLONE_NEWTIME CLONE_NEWUSER CLONE_NEWUTS CLONE_PARENT CLONE_PARENT_SETTID CLONE_PIDFD CLONE_PTRACE CLONE_SETTLS
CLONE_SIGHAND CLONE_SYSVSEM CLONE_THREAD CLONE_UNTRACED CLONE_VFORK CLONE_VM CLOSE_RANGE_CLOEXEC CLOSE_RANGE_UNSHARE
COLL_WEIGHTS_MAX CPU_ALLOC CPU_ALLOC_SIZE CPU_AND CPU_AND_S CPU_CLR CPU_CLR_S CPU_COUNT CPU_COUNT_S CPU_EQUAL
CPU_EQUAL_S CPU_FREE CPU_ISSET CPU_ISSET_S CPU_OR CPU_OR_S CPU_SET CPU_SETSIZE CPU_SET_S CPU_XOR CPU_XOR_S CPU_ZERO
CPU_ZERO_S CSIGNAL DELAYTIMER_MAX E2BIG EACCES EADDRINUSE EADDRNOTAVAIL EADV EAFNOSUPPORT EAGAIN EALREADY EBADE EBADF
EBADFD EBADMSG EBADR EBADRQC EBADSLT EBFONT EBUSY ECANCELED ECHILD ECHRNG ECOMM ECONNABORTED ECONNREFUSED ECONNRESET
EDEADLK EDEADLOCK EDESTADDRREQ EDOM EDOTDOT EDQUOT EEXIST EFAULT EFBIG EHOSTDOWN EHOSTUNREACH EHWPOISON EIDRM EILSEQ
EINPROGRESS EINTR EINVAL EIO EISCONN EISDIR EISNAM EKEYEXPIRED EKEYREJECTED EKEYREVOKED EL2HLT EL2NSYNC EL3HLT EL3RST
ELIBACC ELIBBAD ELIBEXEC ELIBMAX ELIBSCN ELNRNG ELOOP EMEDIUMTYPE EMFILE EMLINK EMSGSIZE EMULTIHOP ENAMETOOLONG ENAVAIL
ENETDOWN ENETRESET ENETUNREACH ENFILE ENOANO ENOBUFS ENOCSI ENODATA ENODEV ENOENT ENOEXEC ENOKEY ENOLCK ENOLINK
ENOMEDIUM ENOMEM ENOMSG ENONET ENOPKG ENOPROTOOPT ENOSPC ENOSR ENOSTR ENOSYS ENOTBLK ENOTCONN ENOTDIR ENOTEMPTY ENOTNAM
ENOTRECOVERABLE ENOTSOCK ENOTSUP ENOTTY ENOTUNIQ ENXIO EOF EOPNOTSUPP EOVERFLOW EOWNERDEAD EPERM EPFNOSUPPORT EPIPE
EPROTO EPROTONOSUPPORT EPROTOTYPE ERANGE EREMCHG EREMOTE EREMOTEIO ERESTART ERFKILL EROFS ESHUTDOWN ESOCKTNOSUPPORT
ESPIPE ESRCH ESRMNT ESTALE ESTRPIPE ETIME ETIMEDOUT ETOOMANYREFS ETXTBSY EUCLEAN EUNATCH EUSERS EWOULDBLOCK EXDEV EXFULL
EXIT_FAILURE EXIT_SUCCESS EXPR_NEST_MAX FALSE FD_CLR FD_ISSET FD_SET FD_SETSIZE FD_ZERO FILENAME_MAX FOPEN_MAX F_LOCK
F_OK F_TEST F_TLOCK F_ULOCK HOST_NAME_MAX I INFINITY INT16_C INT16_MAX INT16_MIN INT16_WIDTH INT32_C INT32_MAX INT32_MIN
INT32_WIDTH INT64_C INT64_MAX INT64_MIN INT64_WIDTH INT8_C INT8_MAX INT8_MIN INT8_WIDTH INTMAX_C INTMAX_MAX INTMAX_MIN
INTMAX_WIDTH INTPTR_MAX INTPTR_MIN INTPTR_WIDTH INT_FAST16_MAX INT_FAST16_MIN INT_FAST16_WIDTH INT_FAST32_MAX
INT_FAST32_MIN INT_FAST32_WIDTH INT_FAST64_MAX INT_FAST64_MIN INT_FAST64_WIDTH INT_FAST8_MAX INT_FAST8_MIN
INT_FAST8_WIDTH INT_LEAST16_MAX INT_LEAST16_MIN INT_LEAST16_WIDTH INT_LEAST32_MAX INT_LEAST32_MIN INT_LEAST32_WIDTH
INT_LEAST64_MAX INT_LEAST64_MIN INT_LEAST64_WIDTH INT_LEAST8_MAX INT_LEAST8_MIN INT_LEAST8_WIDTH INT_MAX INT_MIN
INT_WIDTH IOV_MAX ITIMER_PROF ITIMER_REAL ITIMER_VIRTUAL LC_ADDRESS LC_ADDRESS_MASK LC_ALL LC_ALL_MASK LC_COLLATE
LC_COLLATE_MASK LC_CTYPE LC_CTYPE_MASK LC_GLOBAL_LOCALE LC_IDENTIFICATION LC_IDENTIFICATION_MASK LC_MEASUREMENT
LC_MEASUREMENT_MASK LC_MESSAGES LC_MESSAGES_MASK LC_MONETARY LC_MONETARY_MASK LC_NAME LC_NAME_MASK LC_NUMERIC
LC_NUMERIC_MASK LC_PAPER LC_PAPER_MASK LC_TELEPHONE LC_TELEPHONE_MASK LC_TIME LC_TIME_MASK LINE_MAX LITTLE_ENDIAN
LLONG_MAX LLONG_MIN LLONG_WIDTH LOGIN_NAME_MAX LONG_BIT LONG_LONG_MAX LONG_LONG_MIN LONG_MAX LONG_MIN LONG_WIDTH L_INCR
L_SET L_XTND L_ctermid L_cuserid L_tmpnam MAX_CANON MAX_INPUT MB_CUR_MAX MB_LEN_MAX MOD_CLKA MOD_CLKB MOD_ESTERROR
MOD_FREQUENCY MOD_MAXERROR MOD_MICRO MOD_NANO MOD_OFFSET MOD_STATUS MOD_TAI MOD_TIMECONST MQ_PRIO_MAX NAME_MAX NAN
NDEBUG NFDBITS NGROUPS_MAX NL_ARGMAX NL_LANGMAX NL_MSGMAX NL_NMAX NL_SETMAX NL_TEXTMAX NULL NZERO PATH_MAX PDP_ENDIAN
PIPE_BUF PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP PTHREAD_ATTR_NO_SIGMASK_NP PTHREAD_BARRIER_SERIAL_THREAD PTHREAD_CANCELED
PTHREAD_CANCEL_ASYNCHRONOUS PTHREAD_CANCEL_DEFERRED PTHREAD_CANCEL_DISABLE PTHREAD_CANCEL_ENABLE
PTHREAD_COND_INITIALIZER PTHREAD_CREATE_DETACHED PTHREAD_CREATE_JOINABLE PTHREAD_DESTRUCTOR_ITERATIONS
PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP PTHREAD_EXPLICIT_SCHED PTHREAD_INHERIT_SCHED PTHREAD_KEYS_MAX
PTHREAD_MUTEX_INITIALIZER PTHREAD_ONCE_INIT PTHREAD_PROCESS_PRIVATE PTHREAD_PROCESS_SHARED
PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP PTHREAD_RWLOCK_INITIALIZER PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP
PTHREAD_SCOPE_PROCESS PTHREAD_SCOPE_SYSTEM PTHREAD_STACK_MIN PTRDIFF_MAX PTRDIFF_MIN PTRDIFF_WIDTH P_tmpdir RAND_MAX
RENAME_EXCHANGE RENAME_NOREPLACE RENAME_WHITEOUT RE_DUP_MAX RSEQ_SIG RTSIG_MAX R_OK SCHAR_MAX SCHAR_MIN SCHAR_WIDTH
SCHED_BATCH SCHED_DEADLINE SCHED_FIFO SCHED_IDLE SCHED_ISO SCHED_OTHER SCHED_RESET_ON_FORK SCHED_RR SEEK_CUR SEEK_DATA
SEEK_END SEEK_HOLE SEEK_SET SEM_FAILED SEM_VALUE_MAX SHRT_MAX SHRT_MIN SHRT_WIDTH SIG_ATOMIC_MAX SIG_ATOMIC_MIN
SIG_ATOMIC_WIDTH SIZE_MAX SIZE_WIDTH SSIZE_MAX STA_CLK STA_CLOCKERR STA_DEL STA_FLL STA_FREQHOLD STA_INS STA_MODE
STA_NANO STA_PLL STA_PPSERROR STA_PPSFREQ STA_PPSJITTER STA_PPSSIGNAL STA_PPSTIME STA_PPSWANDER STA_RONLY STA_UNSYNC
STDERR_FILENO STDIN_FILENO STDOUT_FILENO TEMP_FAILURE_RETRY TIMER_ABSTIME TIMESPEC_TO_TIMEVAL TIMEVAL_TO_TIMESPEC
TIME_UTC TMP_MAX TRUE TTY_NAME_MAX UCHAR_MAX UCHAR_WIDTH UINT16_C UINT16_MAX UINT16_WIDTH UINT32_C UINT32_MAX
UINT32_WIDTH UINT64_C UINT64_MAX UINT64_WIDTH UINT8_C UINT8_MAX UINT8_WIDTH UINTMAX_C UINTMAX_MAX UINTMAX_WIDTH
UINTPTR_MAX UINTPTR_WIDTH UINT_FAST16_MAX UINT_FAST16_WIDTH UINT_FAST32_MAX UINT_FAST32_WIDTH UINT_FAST64_MAX
UINT_FAST64_WIDTH UINT_FAST8_MAX UINT_FAST8_WIDTH UINT_LEAST16_MAX UINT_LEAST16_WIDTH UINT_LEAST32_MAX
UINT_LEAST32_WIDTH UINT_LEAST64_MAX UINT_LEAST64_WIDTH UINT_LEAST8_MAX UINT_LEAST8_WIDTH UINT_MAX UINT_WIDTH ULLONG_MAX
ULLONG_WIDTH ULONG_LONG_MAX ULONG_MAX ULONG_WIDTH USHRT_MAX USHRT_WIDTH WCHAR_MAX WCHAR_MIN WCHAR_WIDTH WCONTINUED WEOF
WEXITED WEXITSTATUS WIFCONTINUED WIFEXITED WIFSIGNALED WIFSTOPPED WINT_MAX WINT_MIN WINT_WIDTH WNOHANG WNOWAIT WORD_BIT
WSTOPPED WSTOPSIG WTERMSIG WUNTRACED W_OK XATTR_LIST_MAX XATTR_NAME_MAX XATTR_SIZE_MAX X_OK alloca assert be16toh
be32toh be64toh complex errno htobe16 htobe32 htobe64 htole16 htole32 htole64 i386 le16toh le32toh le64toh linux major
makedev minor offsetof pthread_cleanup_pop pthread_cleanup_pop_restore_np pthread_cleanup_push
pthread_cleanup_push_defer_np sched_priority si_pid stderr stdin stdout strdupa strndupa timeradd timerclear timercmp
timerisset timersub unix va_arg
)";

// Functions, variables, types and enumerators of the C library in the global namespace: those that the generated
// headers include, and the lower-case ones of the other headers that programs use.
constexpr const char* kGlobals = R"(
FILE LLVMFuzzerTestOneInput a64l abort abs accept accept4 access acct active_reg_t addrinfo adjtime aio_cancel
aio_cancel64 aio_error aio_error64 aio_fsync aio_fsync64 aio_init aio_read aio_read64 aio_return aio_return64
aio_suspend aio_suspend64 aio_write aio_write64 aiocb aiocb64 aioinit alarm aligned_alloc alphasort alphasort64
arc4random arc4random_buf arc4random_uniform asctime asctime_r asprintf at_quick_exit atexit atof atoi atol atoll
basename bcmp bcopy bind bindresvport bindresvport6 blkcnt64_t blkcnt_t blksize_t brk bsearch btowc bzero caddr_t calloc
canonicalize_file_name catclose catgets catopen cc_t cfgetispeed cfgetospeed cfmakeraw cfsetispeed cfsetospeed
cfsetspeed chdir chmod chown chroot clearenv clearerr clearerr_unlocked clock clock_adjtime clock_getcpuclockid
clock_getres clock_gettime clock_nanosleep clock_settime clock_t clockid_t clone close close_range closedir closefrom
closelog cmsghdr comparison_fn_t confstr connect cookie_close_function_t cookie_io_functions_t cookie_read_function_t
cookie_seek_function_t cookie_write_function_t copy_file_range cpu_set_t creat creat64 crypt ctermid ctime ctime_r
cuserid daddl daddr_t daemon daylight ddivl dev_t dfmal difftime dirent dirent64 dirfd dirname div div_t dl_find_object
dladdr dladdr1 dlclose dlerror dlinfo dlmopen dlopen dlsym dlvsym dmull double_t dprintf drand48 drand48_data drand48_r
drem dremf dreml dsqrtl dsubl dup dup2 dup3 duplocale dysize eaccess ecvt ecvt_r endgrent endhostent endnetent
endnetgrent endorder endprotoent endpwent endrpcent endservent endusershell entry environ epoll_create epoll_create1
epoll_ctl epoll_data epoll_data_t epoll_event epoll_pwait epoll_pwait2 epoll_wait erand48 erand48_r error_t euidaccess
eventfd eventfd_read eventfd_t eventfd_write execl execle execlp execv execve execveat execvp execvpe exit
explicit_bzero f32addf128 f32addf32x f32addf64 f32addf64x f32divf128 f32divf32x f32divf64 f32divf64x f32fmaf128
f32fmaf32x f32fmaf64 f32fmaf64x f32mulf128 f32mulf32x f32mulf64 f32mulf64x f32sqrtf128 f32sqrtf32x f32sqrtf64
f32sqrtf64x f32subf128 f32subf32x f32subf64 f32subf64x f32xaddf128 f32xaddf64 f32xaddf64x f32xdivf128 f32xdivf64
f32xdivf64x f32xfmaf128 f32xfmaf64 f32xfmaf64x f32xmulf128 f32xmulf64 f32xmulf64x f32xsqrtf128 f32xsqrtf64 f32xsqrtf64x
f32xsubf128 f32xsubf64 f32xsubf64x f64addf128 f64addf64x f64divf128 f64divf64x f64fmaf128 f64fmaf64x f64mulf128
f64mulf64x f64sqrtf128 f64sqrtf64x f64subf128 f64subf64x f64xaddf128 f64xdivf128 f64xfmaf128 f64xmulf128 f64xsqrtf128
f64xsubf128 f_owner_ex faccessat fadd faddl fallocate fallocate64 fchdir fchmod fchmodat fchown fchownat fclose
fcloseall fcntl fcntl64 fcvt fcvt_r fd_mask fd_set fdatasync fdiv fdivl fdopen fdopendir feof feof_unlocked ferror
ferror_unlocked fexecve fflush fflush_unlocked ffma ffmal ffs ffsl ffsll fgetc fgetc_unlocked fgetgrent fgetgrent_r
fgetpos fgetpos64 fgetpwent fgetpwent_r fgets fgets_unlocked fgetwc fgetwc_unlocked fgetws fgetws_unlocked file_handle
fileno fileno_unlocked finite finitef finitel float_t flock flock64 flockfile fmemopen fmul fmull fnmatch fopen fopen64
fopencookie fork fpathconf fpos64_t fpos_t fpregset_t fprintf fputc fputc_unlocked fputs fputs_unlocked fputwc
fputwc_unlocked fputws fputws_unlocked fread fread_unlocked free freeaddrinfo freelocale freopen freopen64 fsblkcnt64_t
fsblkcnt_t fscanf fsconfig fsconfig_command fseek fseeko fseeko64 fsetpos fsetpos64 fsfilcnt64_t fsfilcnt_t fsid_t
fsmount fsopen fspick fsqrt fsqrtl fstat fstat64 fstatat fstatat64 fstatvfs fstatvfs64 fsub fsubl fsync ftell ftello
ftello64 ftruncate ftruncate64 ftrylockfile funlockfile futimens futimes futimesat fwide fwprintf fwrite fwrite_unlocked
fwscanf gai_cancel gai_error gai_strerror gai_suspend gaicb gamma gammaf gammal gcvt get_current_dir_name getaddrinfo
getaddrinfo_a getc getc_unlocked getchar getchar_unlocked getcontext getcpu getcwd getdate getdate_err getdate_r
getdelim getdents64 getdirentries getdirentries64 getdomainname getdtablesize getegid getentropy getenv geteuid getgid
getgrent getgrent_r getgrgid getgrgid_r getgrnam getgrnam_r getgrouplist getgroups gethostbyaddr gethostbyaddr_r
gethostbyname gethostbyname2 gethostbyname2_r gethostbyname_r gethostent gethostent_r gethostid gethostname
getipv4sourcefilter getitimer getline getloadavg getlogin getlogin_r getnameinfo getnetbyaddr getnetbyaddr_r
getnetbyname getnetbyname_r getnetent getnetent_r getnetgrent getnetgrent_r getopt getopt_long getopt_long_only
getpagesize getpass getpeername getpgid getpgrp getpid getppid getpriority getprotobyname getprotobyname_r
getprotobynumber getprotobynumber_r getprotoent getprotoent_r getpt getpw getpwent getpwent_r getpwnam getpwnam_r
getpwuid getpwuid_r getresgid getresuid getrlimit getrlimit64 getrpcbyname getrpcbyname_r getrpcbynumber
getrpcbynumber_r getrpcent getrpcent_r getrusage getservbyname getservbyname_r getservbyport getservbyport_r getservent
getservent_r getsid getsockname getsockopt getsourcefilter getsubopt gettid gettimeofday getuid getumask getusershell
getw getwc getwc_unlocked getwchar getwchar_unlocked getwd gid_t glob glob64 glob64_t glob_pattern_p glob_t globfree
globfree64 gmtime gmtime_r gnu_dev_major gnu_dev_makedev gnu_dev_minor grantpt greg_t gregset_t group group_filter
group_member group_req group_source_req gsignal hcreate hcreate_r hdestroy hdestroy_r herror hostent hsearch
hsearch_data hsearch_r hstrerror htonl htons id_t idtype_t if_freenameindex if_indextoname if_nameindex if_nametoindex
iface ifaddr ifconf ifmap ifreq imaxabs imaxdiv imaxdiv_t in6_addr in6_pktinfo in6addr_any in6addr_loopback in_addr
in_addr_t in_pktinfo in_port_t index inet6_opt_append inet6_opt_find inet6_opt_finish inet6_opt_get_val inet6_opt_init
inet6_opt_next inet6_opt_set_val inet6_option_alloc inet6_option_append inet6_option_find inet6_option_init
inet6_option_next inet6_option_space inet6_rth_add inet6_rth_getaddr inet6_rth_init inet6_rth_reverse inet6_rth_segments
inet6_rth_space inet_addr inet_aton inet_lnaof inet_makeaddr inet_net_ntop inet_net_pton inet_neta inet_netof
inet_network inet_nsap_addr inet_nsap_ntoa inet_ntoa inet_ntop inet_pton initgroups initstate initstate_r innetgr
ino64_t ino_t inotify_add_watch inotify_event inotify_init inotify_init1 inotify_rm_watch insque int16_t int32_t int64_t
int8_t int_fast16_t int_fast32_t int_fast64_t int_fast8_t int_least16_t int_least32_t int_least64_t int_least8_t
intmax_t intptr_t ioctl iovec ip6_mtuinfo ip_mreq ip_mreq_source ip_mreqn ip_msfilter ip_opts ipv6_mreq iruserok
iruserok_af isalnum isalnum_l isalpha isalpha_l isascii isatty isblank isblank_l iscanonical iscntrl iscntrl_l isctype
isdigit isdigit_l iseqsig isfdtype isgraph isgraph_l isinff isinfl islower islower_l isnanf isnanl isprint isprint_l
ispunct ispunct_l issignaling isspace isspace_l isupper isupper_l iswalnum iswalnum_l iswalpha iswalpha_l iswblank
iswblank_l iswcntrl iswcntrl_l iswctype iswctype_l iswdigit iswdigit_l iswgraph iswgraph_l iswlower iswlower_l iswprint
iswprint_l iswpunct iswpunct_l iswspace iswspace_l iswupper iswupper_l iswxdigit iswxdigit_l isxdigit isxdigit_l iszero
itimerspec itimerval jmp_buf jrand48 jrand48_r key_t kill killpg l64a labs lchmod lchown lcong48 lcong48_r lconv ldiv
ldiv_t leaf lfind lgamma_r lgammaf128_r lgammaf32_r lgammaf32x_r lgammaf64_r lgammaf64x_r lgammaf_r lgammal_r linger
link link_map linkat lio_listio lio_listio64 listen llabs lldiv lldiv_t locale_t localeconv localtime localtime_r lockf
lockf64 loff_t longjmp lrand48 lrand48_r lsearch lseek lseek64 lstat lstat64 lutimes madvise main makecontext malloc
max_align_t mblen mbrlen mbrtowc mbsinit mbsnrtowcs mbsrtowcs mbstate_t mbstowcs mbtowc mcontext_t memccpy memchr memcmp
memcpy memfd_create memfrob memmem memmove mempcpy memrchr memset mincore mkdir mkdirat mkdtemp mkfifo mkfifoat mknod
mknodat mkostemp mkostemp64 mkostemps mkostemps64 mkstemp mkstemp64 mkstemps mkstemps64 mktemp mktime mlock mlock2
mlockall mmap mmap64 mmsghdr mode_t mount mount_attr mount_setattr move_mount mprotect mq_attr mq_close mq_getattr
mq_notify mq_open mq_receive mq_send mq_setattr mq_timedreceive mq_timedsend mq_unlink mqd_t mrand48 mrand48_r mremap
msghdr msync munlock munlockall munmap name_to_handle_at nanosleep netent newlocale nexttoward nexttowardf nexttowardl
nfds_t nice nl_catd nl_item nl_langinfo nl_langinfo_l nlink_t nrand48 nrand48_r ntohl ntohs nullptr_t obstack
obstack_printf obstack_vprintf off64_t off_t on_exit open open64 open_by_handle_at open_memstream open_tree
open_wmemstream openat openat64 opendir openlog optarg opterr optind option optopt osockaddr passwd pathconf pause
pclose perror pid_t pipe pipe2 pkey_alloc pkey_free pkey_get pkey_mprotect pkey_set poll pollfd popen posix_fadvise
posix_fadvise64 posix_fallocate posix_fallocate64 posix_madvise posix_memalign posix_openpt posix_spawn
posix_spawn_file_actions_addchdir_np posix_spawn_file_actions_addclose posix_spawn_file_actions_addclosefrom_np
posix_spawn_file_actions_adddup2 posix_spawn_file_actions_addfchdir_np posix_spawn_file_actions_addopen
posix_spawn_file_actions_addtcsetpgrp_np posix_spawn_file_actions_destroy posix_spawn_file_actions_init
posix_spawn_file_actions_t posix_spawnattr_destroy posix_spawnattr_getflags posix_spawnattr_getpgroup
posix_spawnattr_getschedparam posix_spawnattr_getschedpolicy posix_spawnattr_getsigdefault posix_spawnattr_getsigmask
posix_spawnattr_init posix_spawnattr_setflags posix_spawnattr_setpgroup posix_spawnattr_setschedparam
posix_spawnattr_setschedpolicy posix_spawnattr_setsigdefault posix_spawnattr_setsigmask posix_spawnattr_t posix_spawnp
postorder ppoll prctl prctl_mm_map pread pread64 preadv preadv2 preadv64 preadv64v2 preorder printf prlimit prlimit64
process_madvise process_mrelease process_vm_readv process_vm_writev profil program_invocation_name
program_invocation_short_name protoent pselect psiginfo psignal ptrdiff_t ptsname ptsname_r putc putc_unlocked putchar
putchar_unlocked putenv putgrent putpwent puts putw putwc putwc_unlocked putwchar putwchar_unlocked pwrite pwrite64
pwritev pwritev2 pwritev64 pwritev64v2 qecvt qecvt_r qelem qfcvt qfcvt_r qgcvt qsort qsort_r quad_t quick_exit raise
rand rand_r random random_data random_r rawmemchr rcmd rcmd_af re_compile_fastmap re_compile_pattern re_dfa_t re_match
re_match_2 re_pattern_buffer re_registers re_search re_search_2 re_set_registers re_set_syntax re_syntax_options read
readahead readdir readdir64 readdir64_r readdir_r readlink readlinkat readv realloc reallocarray realpath recv recvfrom
recvmmsg recvmsg reg_errcode_t reg_syntax_t regcomp regerror regex_t regexec regfree register_t regmatch_t regoff_t
remap_file_pages remove remque rename renameat renameat2 revoke rewind rewinddir rexec rexec_af rindex rlim64_t rlim_t
rlimit rlimit64 rmdir rpcent rpmatch rresvport rresvport_af rseq rseq_cpu_id_state rseq_cs rseq_cs_flags
rseq_cs_flags_bit rseq_flags rusage ruserok ruserok_af s_reg_t sa_family_t sbrk scalb scalbf scalbl scandir scandir64
scandirat scandirat64 scanf sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getcpu sched_getparam
sched_getscheduler sched_param sched_rr_get_interval sched_setaffinity sched_setparam sched_setscheduler sched_yield
secure_getenv seed48 seed48_r seekdir select sem_clockwait sem_close sem_destroy sem_getvalue sem_init sem_open sem_post
sem_t sem_timedwait sem_trywait sem_unlink sem_wait send sendfile sendfile64 sendmmsg sendmsg sendto servent setbuf
setbuffer setcontext setdomainname setegid setenv seteuid setgid setgrent setgroups sethostent sethostid sethostname
setipv4sourcefilter setitimer setjmp setlinebuf setlocale setlogin setlogmask setnetent setnetgrent setns setpgid
setpgrp setpriority setprotoent setpwent setregid setresgid setresuid setreuid setrlimit setrlimit64 setrpcent
setservent setsid setsockopt setsourcefilter setstate setstate_r settimeofday setuid setusershell setvbuf shm_open
shm_unlink shutdown sig_atomic_t sig_t sigabbrev_np sigaction sigaddset sigaltstack sigandset sigblock sigcontext
sigdelset sigdescr_np sigemptyset sigevent sigevent_t sigfillset siggetmask sighandler_t sighold sigignore siginfo_t
siginterrupt sigisemptyset sigismember sigjmp_buf siglongjmp signal signalfd signalfd_siginfo signgam significand
significandf significandl sigorset sigpause sigpending sigprocmask sigqueue sigrelse sigreturn sigset sigset_t
sigsetmask sigstack sigsuspend sigtimedwait sigval sigval_t sigwait sigwaitinfo size_t sleep snprintf sockaddr
sockaddr_in sockaddr_in6 sockaddr_storage sockaddr_un sockatmark socket socketpair socklen_t speed_t splice sprintf
srand srand48 srand48_r srandom srandom_r sscanf ssignal ssize_t stack_t stat stat64 statvfs statvfs64 statx
statx_timestamp stpcpy stpncpy strcasecmp strcasecmp_l strcasestr strcat strchr strchrnul strcmp strcoll strcoll_l
strcpy strcspn strdup strerror strerror_l strerror_r strerrordesc_np strerrorname_np strfromd strfromf strfromf128
strfromf32 strfromf32x strfromf64 strfromf64x strfroml strfry strftime strftime_l strlen strncasecmp strncasecmp_l
strncat strncmp strncpy strndup strnlen strpbrk strptime strptime_l strrchr strsep strsignal strspn strstr strtod
strtod_l strtof strtof128 strtof128_l strtof32 strtof32_l strtof32x strtof32x_l strtof64 strtof64_l strtof64x
strtof64x_l strtof_l strtoimax strtok strtok_r strtol strtol_l strtold strtold_l strtoll strtoll_l strtoq strtoul
strtoul_l strtoull strtoull_l strtoumax strtouq strverscmp strxfrm strxfrm_l suseconds_t swab swapcontext swprintf
swscanf symlink symlinkat sync sync_file_range syncfs syscall sysconf syslog system sysv_signal tcdrain tcflag_t tcflow
tcflush tcgetattr tcgetpgrp tcgetsid tcp_ca_state tcp_cookie_transactions tcp_info tcp_md5sig tcp_repair_opt
tcp_repair_window tcp_seq tcp_zerocopy_receive tcphdr tcsendbreak tcsetattr tcsetpgrp tdelete tdestroy tee telldir
tempnam termio termios tfind tgkill time time_t timegm timelocal timer_create timer_delete timer_getoverrun
timer_gettime timer_settime timer_t timerfd_create timerfd_gettime timerfd_settime times timespec timespec_get
timespec_getres timeval timex timezone tm tmpfile tmpfile64 tmpnam tmpnam_r tms toascii tolower tolower_l toupper
toupper_l towctrans towctrans_l towlower towlower_l towupper towupper_l truncate truncate64 tsearch ttyname ttyname_r
ttyslot twalk twalk_r tzname tzset u_char u_int u_int16_t u_int32_t u_int64_t u_int8_t u_long u_quad_t u_short ualarm
ucontext_t ucred uid_t uint uint16_t uint32_t uint64_t uint8_t uint_fast16_t uint_fast32_t uint_fast64_t uint_fast8_t
uint_least16_t uint_least32_t uint_least64_t uint_least8_t uintmax_t uintptr_t ulong umask umount umount2 uname ungetc
ungetwc unlink unlinkat unlockpt unsetenv unshare useconds_t uselocale ushort usleep utimbuf utime utimensat utimes
utsname va_list valloc vasprintf vdprintf versionsort versionsort64 vfork vfprintf vfscanf vfwprintf vfwscanf vhangup
vmsplice vprintf vscanf vsnprintf vsprintf vsscanf vswprintf vswscanf vsyslog vwprintf vwscanf wait wait3 wait4 waitid
waitpid wcpcpy wcpncpy wcrtomb wcscasecmp wcscasecmp_l wcscat wcschr wcschrnul wcscmp wcscoll wcscoll_l wcscpy wcscspn
wcsdup wcsftime wcsftime_l wcslen wcsncasecmp wcsncasecmp_l wcsncat wcsncmp wcsncpy wcsnlen wcsnrtombs wcspbrk wcsrchr
wcsrtombs wcsspn wcsstr wcstod wcstod_l wcstof wcstof128 wcstof128_l wcstof32 wcstof32_l wcstof32x wcstof32x_l wcstof64
wcstof64_l wcstof64x wcstof64x_l wcstof_l wcstoimax wcstok wcstol wcstol_l wcstold wcstold_l wcstoll wcstoll_l wcstombs
wcstoq wcstoul wcstoul_l wcstoull wcstoull_l wcstoumax wcstouq wcswcs wcswidth wcsxfrm wcsxfrm_l wctob wctomb wctrans
wctrans_l wctrans_t wctype wctype_l wctype_t wcwidth winsize wint_t wmemchr wmemcmp wmemcpy wmemmove wmempcpy wmemset
wprintf write writev wscanf
)";

// Functions that <math.h> and <complex.h> have for each floating type, without the type's ending.
constexpr std::string_view kFloatEndings[] = {"", "f", "l", "f32", "f64", "f32x", "f64x", "f128"};
constexpr const char* kOfFloats = R"(
acos acosh asin asinh atan atan2 atanh cabs cacos cacosh canonicalize carg casin casinh catan catanh cbrt ccos ccosh
ceil cexp cimag clog clog10 conj copysign cos cosh cpow cproj creal csin csinh csqrt ctan ctanh erf erfc exp exp10 exp2
expm1 fabs fdim floor fma fmax fmaximum fmaximum_mag fmaximum_mag_num fmaximum_num fmaxmag fmin fminimum fminimum_mag
fminimum_mag_num fminimum_num fminmag fmod frexp fromfp fromfpx getpayload hypot ilogb j0 j1 jn ldexp lgamma llogb
llrint llround log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter nextdown nextup pow remainder remquo
rint round roundeven scalbln scalbn setpayload setpayloadsig sin sincos sinh sqrt tan tanh tgamma totalorder
totalordermag trunc ufromfp ufromfpx y0 y1 yn
)";

constexpr const char* kRuntime = R"(
AStackClass AStackSupply Binding Buffer CallContext CallDeadline CallScope Cancellation ClientCredentials
CompletionQueue CopyCode Credentials DoNotWait EntryStub Errc Error EscapedException ExportId ExportOptions Finishing
Fresh Gate GroupMember GroupsKnown Handle HostAuthentication ImageRange ImportOptions InterfaceId MemberReplies
MemberReply NoLimit PassedBack Pdl Pending Principal ProcedureDescriptor Raise Replies Result Scheduling Server
ServerOptions ServerStatistics Status String UniqueFd Unit VariableLength VariableParameter as_bytes client
copies_are_made copy_bytes count_copy describe detail filled fresh fuzz get_argument get_bool get_buffer get_scalar
get_string get_string_field is_result judge_length kDoNotWait kNoLimit kNobodyHere limits locate_variable
make_socket_pair put_result put_result_length put_scalar put_string_field put_variable raise result_buffer
result_window server shim system_error
)";

}  // namespace

bool is_keyword(std::string_view name) {
  static const NameSet kAll = words(kKeywords);
  return kAll.contains(name);
}

bool is_macro(std::string_view name) {
  static const NameSet kAll = words(kMacros);
  // SYS_: system call numbers; each kernel adds some. LRPC_: the runtime's own macros.
  return name.starts_with("SYS_") || name.starts_with("LRPC_") || kAll.contains(name);
}

bool is_global_name(std::string_view name) {
  static const NameSet kAll = words(kGlobals);
  static const NameSet kFloats = words(kOfFloats);
  const auto of_float = [name](std::string_view ending) {
    return name.ends_with(ending) && kFloats.contains(name.substr(0, name.size() - ending.size()));
  };
  return name.starts_with("pthread_") || name.starts_with("PTHREAD_") || name.starts_with("RSEQ_") ||
         kAll.contains(name) || std::ranges::any_of(kFloatEndings, of_float);
}

bool is_runtime_name(std::string_view name) {
  static const NameSet kAll = words(kRuntime);
  return kAll.contains(name);
}

}  // namespace lrpc::stubgen
