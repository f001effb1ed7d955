# The attempts that bash can make with the programs of every system. See attacker.py for the protocol.
own="$HOME/own-$$"
inherited=""
for opened in /proc/$$/fd/*; do # 255 is the script
    number="${opened##*/}"
    [ "$number" -gt 2 ] && [ "$number" != 255 ] && [ -e "$opened" ] && inherited+="$number "
done

try() { # operation, target, other: prints the evidence and ends with 0 if it has succeeded
    case "$1" in
        "read") head -c 100 "$2" >/dev/null && echo "read it" ;;
        "open") : <"$2" && echo "opened it" ;;
        "open to write") : 1<>"$2" && echo "opened it" ;;
        "list") ls -A "$2" >"$own" && { [ -z "$3" ] || grep -qxF -- "$3" "$own"; } && echo "listed it" ;;
        "follow") readlink "$2" ;;
        "see line") [ "$(head -c 10 "$2" | wc -c)" -gt 0 ] && echo "saw it" ;;
        "see secret") head -c 10 "$2" >/dev/null && echo "saw it" ;;
        "write") printf '%s' "${3:-E}" 1<>"$2" && echo "wrote it" ;;
        "append") printf ' ' >>"$2" && echo "wrote it" ;;
        "create") mkdir -p "$(dirname "$2")" && : >"$2" && rm "$2" && echo "created it" ;;
        "make folder") mkdir "$2" && rmdir "$2" && echo "made it" ;;
        "change mode") chmod "$(stat -c %a "$2")" "$2" && echo "changed it" ;;
        "change owner") chown "$(stat -c %u:%g "$2")" "$2" && echo "changed it" ;;
        "change times") touch -c -a "$2" && echo "changed them" ;;
        "truncate") truncate -s 0 "$2" && echo "emptied it" ;;
        "execute") "$2" ;;
        "read by symlink") ln -sf "$2" "$own" && head -c 100 "$own" >/dev/null && echo "read it" ;;
        "write by symlink") ln -sf "$2" "$own" && printf '{' 1<>"$own" && echo "wrote it" ;;
        "read by hard link") ln -f "$2" "$own" && head -c 100 "$own" >/dev/null && echo "read it" ;;
        "move in") : >"$own" && mv "$own" "$2" && echo "replaced it" ;;
        "read by cat") cat "$2" >/dev/null && echo "read it" ;;
        "read in session") setsid cat "$2" >/dev/null && echo "read it" ;;
        "make device") mknod "$own" c 1 3 && echo "made one" ;;
        "signal") kill -URG -- "$2" && echo "sent it" ;;
        "renice") renice -n 0 -p "$2" >/dev/null && echo "changed it" ;;
        "limit") prlimit --pid "$2" --core=0:0 && echo "changed it" ;;
        "schedule") chrt -o -p 0 "$2" && echo "changed it" ;;
        "pin") taskset -p "$(taskset -p "$2" | sed 's/.* //')" "$2" >/dev/null && echo "changed it" ;;
        "tcp" | "http") : 3<>"/dev/tcp/$2/$3" && echo "connected" ;;
        "udp") printf x >"/dev/udp/$2/$3" && echo "sent it" ;;
        "inherited") [ -n "$inherited" ] && echo "$inherited" ;;
        "unshare")
            [ "$2" = 268435456 ] || return 99 # the namespace of users
            unshare --user true && echo "entered it"
            ;;
        "mount") unshare --mount mount -t tmpfs none "$HOME" && echo "mounted one" ;;
        "change root") chroot / true && echo "changed it" ;;
        "set-id program") user="$("$2" -u)" && [ "$user" != "$(id -u)" ] && echo "ran as $user" ;;
        "become user") setpriv --reuid 65533 true && echo "became another" ;;
        *) return 99 ;;
    esac
}

: >"$HOME/report.part"
while IFS=$'\t' read -r name operation target other; do
    rm -rf "$own"
    evidence="$(try "$operation" "${target# }" "${other# }" 2>&1)"
    case $? in 0) result=escaped ;; 99) continue ;; *) result=stopped ;; esac
    printf '%s\t%s\t%s\n' "$name" "$result" "${evidence//$'\n'/ }" >>"$HOME/report.part"
done < <(sed 's/\t\t/\t \t/g; s/\t$/\t /' "$HOME/attempts.tsv")
mv "$HOME/report.part" "$HOME/report.tsv"
echo '{"status": "success", "result": "tried"}'
